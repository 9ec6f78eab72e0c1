package nodes

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// nodesLost is one "kubectl runs nodes lost".
type nodesLost struct {
	*session.Session
	because string
	force   bool
}

func nodesLostCommand(s *session.Session) *cobra.Command {
	l := &nodesLost{Session: s}
	cmd := &cobra.Command{
		Use:   "lost NODE...",
		Short: "Declare nodes lost, so that their Runs move away at once",
		Long: `Declare that nodes are gone. They are cordoned and recorded as lost, as if the scheduler had found them lost,
however many they are: their pods are deleted without grace, and their ranks move to spares or free GPUs. Use this when
the scheduler holds losses back because too many nodes show signs at once.

The command does not check the nodes. Make sure that they are powered off or cut from the network: a pod that still runs
there would run on beside its replacement. A node that is Ready and whose loss is not held back needs --force.

A node that is lost because of a health checker's condition is used again when that condition is gone. Declare it lost
to decide that yourself.

You need the right to patch nodes. To give a node back: kubectl uncordon NODE.`,
		Example: `  # A rack has lost its power
  kubectl runs nodes lost rack7-n1 rack7-n2 rack7-n3 rack7-n4 --because 'PDU 7b has failed'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return session.Fail(session.ExitUsage, "name nodes: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: s.RunE(l.run),
	}
	cmd.Flags().StringVar(&l.because, "because", "", "The reason, for the record on the nodes.")
	cmd.Flags().BoolVar(&l.force, "force", false, "Allow nodes that are Ready and whose loss is not held back.")
	return cmd
}

func (l *nodesLost) run(ctx context.Context, names []string) error {
	c, _, _, err := l.Connect()
	if err != nil {
		return err
	}
	var nodes []*corev1.Node
	for _, name := range names {
		node, err := session.NodeNamed(ctx, c, name) // one that is deleted is lost anyway
		if err != nil {
			return err
		}
		_, held := node.Annotations[rqv1.AnnotationHeldBack]
		_, recorded := nodeloss.Recorded(node)
		_, reason, _, told := nodeloss.Told(node.Annotations[rqv1.AnnotationLost])
		switch {
		case recorded && told && reason == nodeloss.Condition: // nothing is left there: from now on a person gives it back
		case recorded:
			fmt.Fprintf(l.Out, "node %s is already recorded as lost\n", name)
			continue
		case !held && !l.force && picture.Readiness(node) == corev1.ConditionTrue:
			return session.Fail(session.ExitError,
				"node %s is Ready and its loss is not held back: its pods would keep running beside their replacements; drain "+
					"it, or use --force if you know that it is gone", name)
		}
		nodes = append(nodes, node)
	}
	return l.record(ctx, c, nodes)
}

// record cordons all nodes before the first of them is lost: what moves away from one is not to come to another.
func (l *nodesLost) record(ctx context.Context, c client.Client, nodes []*corev1.Node) error {
	message := l.because
	if message == "" {
		message = "no reason given"
	}
	message = fmt.Sprintf("said by %s: %s", session.Whoami(ctx, c), message)
	for _, node := range nodes {
		if err := session.Merge(ctx, c, node, map[string]any{"spec": map[string]any{"unschedulable": true}}); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		record := nodeloss.Record(nodeloss.Verdict{Reason: nodeloss.Administrator, Message: message}, l.Now())
		if err := session.Merge(ctx, c, node, map[string]any{
			"metadata": map[string]any{"uid": node.UID, "annotations": map[string]any{rqv1.AnnotationLost: record}},
			"spec":     map[string]any{"unschedulable": true},
		}); err != nil {
			return err
		}
		fmt.Fprintf(l.Out, "node %s is lost\n", node.Name)
	}
	if len(nodes) > 0 {
		fmt.Fprintln(l.ErrOut, "Their Runs move away. To give a node back: kubectl uncordon NODE")
	}
	return nil
}
