// Package cli is the kubectl plugin "kubectl runs": it submits Runs and shows where they are, who pays for them and why
// they wait. It reads and writes API objects only; no scheduling decision is taken here.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// session is what every command shares: where to read and write, which cluster to talk to, and what time it is.
type session struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	now   func() time.Time
}

// NewCommand returns the command tree of "kubectl runs", which reads and writes the given streams.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), now: time.Now}
	root := &cobra.Command{
		Use:   "kubectl-runs",
		Short: "Submit Runs to jobtree and see where they are, who pays, why they wait and until when",
		Long: `Submit Runs to jobtree and see where they are, who pays, why they wait and until when.

A Run (runs.rq.davidlangworthy.io) is a gang of pods that asks for GPUs: all of it starts, or none of it.
A Budget (budgets.rq.davidlangworthy.io) says what an owner may hold.
A GPU lease (leases.rq.davidlangworthy.io, not the Lease of coordination.k8s.io) records who held which GPUs and
which envelope of which Budget paid.
A Reservation (reservations.rq.davidlangworthy.io) says when a Run that waits is going to start, and what is done for it.

To complete commands and the names of Runs behind "kubectl runs", put a symbolic link to kubectl-runs into PATH under the
name kubectl_complete-runs and load kubectl's own completion. For the bare command see "kubectl-runs completion --help".

` + exitCodesHelp,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl runs"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	s.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(s.submitCommand(), s.listCommand(), s.watchCommand(), s.planCommand(), s.explainCommand(), s.leasesCommand(),
		s.growCommand(), s.shrinkCommand(), s.budgetsCommand(), s.nodesCommand(), s.cutsCommand(), s.auditCommand(), s.versionCommand())
	s.addCompletion(root)
	return root
}

// Execute runs the command that args name, prints its error, if any, on errOut, and returns the exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string, errOut io.Writer) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var failed *failure
	if !errors.As(err, &failed) { // cobra's own errors come from parsing the command line
		failed = &failure{code: exitUsage, message: err.Error() + `; see "kubectl runs --help"`}
	}
	if failed.message != "" {
		fmt.Fprintf(errOut, "Error: %s\n", failed.message)
	}
	return failed.code
}

// runE adapts a command's body to cobra: its error is put into words for people.
func (s *session) runE(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := body(cmd.Context(), args); err != nil {
			return s.inWords(err)
		}
		return nil
	}
}

// runNames accepts between least and most names of Runs as arguments.
func runNames(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fail(exitUsage, "say which Run: %s", cmd.UseLine())
		case len(args) > most:
			return fail(exitUsage, "%s takes the name of one Run, not %d", cmd.CommandPath(), len(args))
		}
		return nil
	}
}
