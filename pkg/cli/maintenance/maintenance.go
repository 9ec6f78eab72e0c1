// Package maintenance is "kubectl runs maintenance".
package maintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// Command returns "kubectl runs maintenance".
func Command(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "maintenance",
		Short: "Announce planned maintenance of nodes, list it, and call it off",
		Long: `Announce planned maintenance of nodes, list it, and call it off.

From the announcement on, such a node gets no new pods, except of Runs whose maxDuration ends before the maintenance
starts, and of Runs that declare a checkpoint or spares: they come there if they would wait otherwise, until shortly
before. Another Run that would start there with a maxDuration of a day or more is told so, and no Run is cut for it in
its first 24 hours of waiting while that is so. Ranks on the node move away shortly before it starts, if there is room
elsewhere; no Run is cut for that. Owners see the date in the condition MaintenanceAhead of their Runs. Dates of waiting
Runs count on the node again from the end of the maintenance. The node is then used again without further action.

The announcement is stored in the Node's annotations rq.davidlangworthy.io/maintenance-start and -end: whoever may patch
nodes may announce maintenance.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return session.Fail(session.ExitUsage, "%q is not a command of %q; choose from set, list, cancel", args[0],
					cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(setCommand(s), listCommand(s), cancelCommand(s))
	return cmd
}

// choice is which nodes a command is about.
type choice struct{ selector string }

func (f *choice) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "Label selector of nodes, such as topology.rack=r7.")
}

// nodes reads the nodes that are named, or selected. It fails if one of them is not there, or none is.
func (f *choice) nodes(ctx context.Context, c client.Client, names []string) ([]corev1.Node, error) {
	if (len(names) == 0) == (f.selector == "") {
		return nil, session.Fail(session.ExitUsage, "name the nodes, or choose them with --selector")
	}
	if f.selector == "" {
		return named(ctx, c, names)
	}
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return nil, session.Fail(session.ExitUsage, "--selector: %v", err)
	}
	var list corev1.NodeList
	if err := c.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, session.Fail(session.ExitError, "no node matches --selector %s", f.selector)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func named(ctx context.Context, c client.Client, names []string) ([]corev1.Node, error) {
	var out []corev1.Node
	for _, name := range names {
		node, err := session.NodeNamed(ctx, c, name)
		if err != nil {
			return nil, err
		}
		out = append(out, *node)
	}
	return out, nil
}

// annotate writes when a node's maintenance starts and ends; nil takes the annotation away. A node that is another one
// by now, under the same name, is left alone.
func annotate(ctx context.Context, c client.Client, node *corev1.Node, start, end *string) error {
	return session.Merge(ctx, c, node, map[string]any{"metadata": map[string]any{"uid": node.UID,
		"annotations": map[string]any{rqv1.AnnotationMaintenanceStart: start, rqv1.AnnotationMaintenanceEnd: end}}})
}

// canceler is one "kubectl runs maintenance cancel".
type canceler struct {
	*session.Session
	choice choice
}

func cancelCommand(s *session.Session) *cobra.Command {
	l := &canceler{Session: s}
	cmd := &cobra.Command{
		Use:   "cancel [NODE...]",
		Short: "Call off planned maintenance of nodes, or mark it as over",
		Long: `Call off planned maintenance of nodes, or mark it as over: the nodes are used again at once. A node that
somebody has cordoned stays cordoned.`,
		Example: `  # The rack is ready sooner than announced
  kubectl runs maintenance cancel -l topology.rack=r7`,
		RunE: s.RunE(l.run),
	}
	l.choice.addTo(cmd)
	return cmd
}

func (l *canceler) run(ctx context.Context, names []string) error {
	c, _, _, err := l.Connect()
	if err != nil {
		return err
	}
	nodes, err := l.choice.nodes(ctx, c, names)
	if err != nil {
		return err
	}
	for i := range nodes {
		node := &nodes[i]
		_, starts := node.Annotations[rqv1.AnnotationMaintenanceStart]
		_, ends := node.Annotations[rqv1.AnnotationMaintenanceEnd]
		if !starts && !ends {
			fmt.Fprintf(l.Out, "node %s: no maintenance was announced\n", node.Name)
			continue
		}
		if err := annotate(ctx, c, node, nil, nil); err != nil {
			return err
		}
		fmt.Fprintf(l.Out, "node %s: maintenance canceled\n", node.Name)
	}
	return nil
}
