// Package resize is "kubectl runs grow" and "kubectl runs shrink".
package resize

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// resize is one "kubectl runs grow" or "kubectl runs shrink".
type resize struct {
	*session.Session
	wider  bool
	by, to int32
}

// Grow returns "kubectl runs grow".
func Grow(s *session.Session) *cobra.Command {
	r := &resize{Session: s, wider: true}
	return r.command(&cobra.Command{
		Use:   "grow RUN --by GPUS | --to GPUS",
		Short: "Make a malleable Run wider",
		Long: `Make a malleable Run wider, by raising spec.malleable.desiredTotalGPUs. The Run grows one step at a time,
as free GPUs and Budgets allow, and never takes GPUs that a Reservation is about to need. --by counts from the Run's
target width.`,
		Example: `  # Let a Run have all that its spec allows, 160 GPUs
  kubectl runs grow trainer --to 160`,
	})
}

// Shrink returns "kubectl runs shrink".
func Shrink(s *session.Session) *cobra.Command {
	r := &resize{Session: s}
	return r.command(&cobra.Command{
		Use:   "shrink RUN --by GPUS | --to GPUS",
		Short: "Make a malleable Run narrower",
		Long: `Make a malleable Run narrower, by lowering spec.malleable.desiredTotalGPUs. The pods of the highest ranks
are told to end and have the configured notice period, or their own grace period if that is longer. --by counts from the
Run's current width, or from its target if that is less.`,
		Example: `  # Give 32 GPUs back
  kubectl runs shrink trainer --by 32`,
	})
}

func (r *resize) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args = session.RunNames(1, 1)
	cmd.RunE = r.OnRuns(r.run)
	cmd.ValidArgsFunction = r.CompleteRuns
	cmd.Flags().Int32Var(&r.by, "by", 0, "By how many GPUs.")
	cmd.Flags().Int32Var(&r.to, "to", 0, "To how many GPUs.")
	cmd.MarkFlagsMutuallyExclusive("by", "to")
	cmd.MarkFlagsOneRequired("by", "to")
	return cmd
}

func (r *resize) run(ctx context.Context, names []string) error {
	if r.by < 0 || r.to < 0 || r.by+r.to == 0 {
		return session.Fail(session.ExitUsage, "--by and --to take a positive number of GPUs")
	}
	c, namespace, _, err := r.Connect()
	if err != nil {
		return err
	}
	var run rqv1.Run
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names[0]}, &run); err != nil {
		return r.NotFoundInWords(err, namespace, names[0])
	}
	was := run.Spec.Desired()
	to, err := r.newWidth(&run)
	if err != nil {
		return err
	}
	if to == was {
		fmt.Fprintf(r.Out, "Run %s already wants %d GPUs\n", session.NameOf(&run), to)
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"malleable":{"desiredTotalGPUs":%d}}}`, to)
	if err := c.Patch(ctx, &run, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return r.NotFoundInWords(err, namespace, names[0])
	}
	fmt.Fprintf(r.Out, "Run %s now wants %d GPUs instead of %d\n", session.NameOf(&run), to, was)
	fmt.Fprintf(r.ErrOut, "Follow with: kubectl runs watch -n %s %s\n", namespace, session.NameOf(&run))
	return nil
}
