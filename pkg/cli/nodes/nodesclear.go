package nodes

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/suspicion"
)

// nodesClear is one "kubectl runs nodes clear".
type nodesClear struct{ *session.Session }

func nodesClearCommand(s *session.Session) *cobra.Command {
	l := &nodesClear{Session: s}
	return &cobra.Command{
		Use:   "clear NODE...",
		Short: "Clear the suspicion of nodes, so that they are used like any other",
		Long: `Clear the suspicion of nodes once they have been checked or repaired. They are used like any other node until a
new incident. The old incidents stay in the record ("kubectl runs nodes -o yaml").

You need the right to patch nodes. A node that is cordoned or lost stays so: kubectl uncordon NODE.`,
		Example: `  # All suspect nodes have passed their burn-in
  kubectl runs nodes clear $(kubectl runs nodes -o json | jq -r '.nodes[] | select(.state == "Suspect") | .name')`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return session.Fail(session.ExitUsage, "name nodes: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: s.RunE(l.run),
	}
}

func (l *nodesClear) run(ctx context.Context, names []string) error {
	c, _, _, err := l.Connect()
	if err != nil {
		return err
	}
	for _, name := range names {
		node, err := session.NodeNamed(ctx, c, name)
		if err != nil {
			return err
		}
		against := suspicion.Of(node)
		if !l.Now().Before(against.Until()) {
			fmt.Fprintf(l.Out, "node %s is not suspect\n", name)
			continue
		}
		against = against.Clear(l.Now())
		if err := session.Merge(ctx, c, node, map[string]any{"metadata": map[string]any{"uid": node.UID,
			"resourceVersion": node.ResourceVersion,
			"annotations":     map[string]any{rqv1.AnnotationSuspect: against.String()}}}); err != nil {
			return err
		}
		fmt.Fprintf(l.Out, "node %s is cleared\n", name)
	}
	return nil
}
