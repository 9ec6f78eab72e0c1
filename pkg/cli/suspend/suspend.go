// Package suspend is "kubectl runs suspend" and "kubectl runs resume".
package suspend

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// change is one "kubectl runs suspend" or "kubectl runs resume".
type change struct {
	*session.Session
	suspend bool
}

// Suspend returns "kubectl runs suspend".
func Suspend(s *session.Session) *cobra.Command {
	c := &change{Session: s, suspend: true}
	return c.command(&cobra.Command{
		Use:        "suspend RUN...",
		SuggestFor: []string{"hold", "pause"},
		Short:      "Hold Runs back, or make running ones give up their GPUs and wait",
		Long: `Suspend Runs by setting spec.suspend to true. A waiting Run is held back: it has no pods, no date and no
reserved GPUs. A running Run gives up all of its GPUs: its pods are told to end and have their own grace period, and
when it is resumed it starts again, from its checkpoint if it has one. Either keeps its place by age. While a Run is
suspended, "kubectl runs explain" says when it would start.`,
		Example: `  # Free the GPUs of a Run until tomorrow
  kubectl runs suspend trainer`,
	})
}

// Resume returns "kubectl runs resume".
func Resume(s *session.Session) *cobra.Command {
	c := &change{Session: s}
	return c.command(&cobra.Command{
		Use:        "resume RUN...",
		SuggestFor: []string{"release", "unsuspend"},
		Short:      "Resume suspended Runs",
		Long: `Resume Runs by setting spec.suspend to false. They are planned like all waiting Runs, in the order of
their age.`,
		Example: `  kubectl runs resume trainer`,
	})
}

func (c *change) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args = session.RunNames(1, math.MaxInt)
	cmd.RunE = c.OnRuns(c.run)
	cmd.ValidArgsFunction = c.CompleteMoreRuns
	return cmd
}

// run changes one Run after the other. One that cannot be changed stops no other.
func (c *change) run(ctx context.Context, names []string) error {
	api, namespace, _, err := c.Connect()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, c.set(ctx, api, client.ObjectKey{Namespace: namespace, Name: name}))
	}
	return errors.Join(errs...)
}

// set changes one Run.
func (c *change) set(ctx context.Context, api client.Client, key client.ObjectKey) error {
	var run rqv1.Run
	if err := api.Get(ctx, key, &run); err != nil {
		return c.NotFoundInWords(err, key.Namespace, key.Name)
	}
	is := map[bool]string{true: "suspended", false: "not suspended"}[c.suspend]
	switch {
	case run.Ended():
		return session.Fail(session.ExitError, "Run %s is %s: it cannot be suspended or resumed", session.NameOf(&run),
			view.PhaseOf(&run))
	case run.Spec.Suspend == c.suspend:
		fmt.Fprintf(c.Out, "Run %s is %s already\n", session.NameOf(&run), is)
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, c.suspend)
	if err := api.Patch(ctx, &run, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return c.NotFoundInWords(err, key.Namespace, key.Name)
	}
	fmt.Fprintf(c.Out, "Run %s is %s now\n", session.NameOf(&run), is)
	return nil
}
