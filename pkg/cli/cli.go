// Package cli is the kubectl plugin "kubectl runs": it submits Runs and shows where they are, who pays for them and
// why they wait. It reads and writes API objects only; no scheduling decision is taken here. Each command has a
// package of its own.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/davidlangworthy/jobtree/pkg/cli/audit"
	"github.com/davidlangworthy/jobtree/pkg/cli/budgets"
	"github.com/davidlangworthy/jobtree/pkg/cli/cancel"
	"github.com/davidlangworthy/jobtree/pkg/cli/cuts"
	"github.com/davidlangworthy/jobtree/pkg/cli/dashboard"
	"github.com/davidlangworthy/jobtree/pkg/cli/explain"
	"github.com/davidlangworthy/jobtree/pkg/cli/fleet"
	"github.com/davidlangworthy/jobtree/pkg/cli/history"
	"github.com/davidlangworthy/jobtree/pkg/cli/imports"
	"github.com/davidlangworthy/jobtree/pkg/cli/leases"
	"github.com/davidlangworthy/jobtree/pkg/cli/list"
	"github.com/davidlangworthy/jobtree/pkg/cli/logs"
	"github.com/davidlangworthy/jobtree/pkg/cli/maintenance"
	"github.com/davidlangworthy/jobtree/pkg/cli/nodes"
	"github.com/davidlangworthy/jobtree/pkg/cli/plan"
	"github.com/davidlangworthy/jobtree/pkg/cli/resize"
	"github.com/davidlangworthy/jobtree/pkg/cli/saved"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/shell"
	"github.com/davidlangworthy/jobtree/pkg/cli/submit"
	"github.com/davidlangworthy/jobtree/pkg/cli/suspend"
	"github.com/davidlangworthy/jobtree/pkg/cli/watch"
)

// NewCommand returns the command tree of "kubectl runs", which reads and writes the given streams.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return newCommand(streams, time.Now)
}

// newCommand returns the command tree for somebody whose clock is the given one.
func newCommand(streams genericiooptions.IOStreams, now func() time.Time) *cobra.Command {
	s := &session.Session{IOStreams: streams, Flags: genericclioptions.NewConfigFlags(true), Now: now}
	root := &cobra.Command{
		Use:   "kubectl-runs",
		Short: "Submit Runs to jobtree and see where they are, who pays, why they wait and until when",
		Long: `Submit Runs to jobtree and see where they are, who pays, why they wait and until when.

A Run (runs.rq.davidlangworthy.io) is a gang of pods that asks for GPUs: all of it starts, or none of it.
A Run that represents pods which others created, such as those of a JobSet, is shown as KIND/NAME, for example
JobSet/llm. Commands take that name, with the kind in upper or lower case, or the Run's own name. A namespace may stand
before either, as in team/train.
A Budget (budgets.rq.davidlangworthy.io) says what an owner may hold.
A GPU lease (leases.rq.davidlangworthy.io, not the Lease of coordination.k8s.io) records who held which GPUs and which
envelope of which Budget paid.
A Reservation (reservations.rq.davidlangworthy.io) says when a waiting Run will start, and what will be done to make
room for it.

On a terminal, a table shows the columns that fit its width. In a file or a pipe it has the usual columns; -o wide shows
all of them.

To complete commands and names of Runs after "kubectl runs", put a symbolic link to kubectl-runs into PATH under the
name kubectl_complete-runs, and load kubectl's own completion. For the bare command see "kubectl-runs completion
--help".

` + session.ExitCodesHelp,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl runs"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	s.Flags.AddFlags(root.PersistentFlags())
	root.AddCommand(submit.Command(s), submit.New(s), imports.Command(s), list.Command(s), watch.Command(s),
		plan.Command(s), explain.Command(s), logs.Command(s), shell.Shell(s), shell.Exec(s), leases.Command(s),
		history.Command(s), resize.Grow(s), resize.Shrink(s), suspend.Suspend(s), suspend.Resume(s), cancel.Command(s),
		saved.Command(s), budgets.Command(s), fleet.Command(s), nodes.Command(s), maintenance.Command(s), cuts.Command(s),
		audit.Command(s), dashboard.Command(s), versionCommand(s))
	addHelp(root, s)
	s.AddCompletion(root)
	return root
}

// Execute runs the command that args name, prints its error, if any, on errOut, and returns the exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string, errOut io.Writer) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return session.ExitOK
	}
	var failed *session.Failure
	if !errors.As(err, &failed) { // cobra's own errors come from parsing the command line
		failed = &session.Failure{Code: session.ExitUsage, Message: onOneLine(err) + `; see "kubectl runs --help"`}
	}
	if failed.Message != "" {
		fmt.Fprintf(errOut, "Error: %s\n", printers.EscapeTerminal(failed.Message))
	}
	return failed.Code
}

// What cobra says of flags of which one is needed, and of those that exclude each other.
var (
	oneOf   = regexp.MustCompile(`^at least one of the flags in the group \[(.*)\] is required$`)
	onlyOne = regexp.MustCompile(`^if any flags in the group .* can be; \[(.*)\] were all set$`)
)

// flagsOf names flags, such as --by and --to.
func flagsOf(names, between string) string {
	return "--" + strings.ReplaceAll(names, " ", between+"--")
}

// onOneLine is an error of cobra's with the commands that it suggests, if any.
func onOneLine(err error) string {
	text, suggested, _ := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	if found := oneOf.FindStringSubmatch(text); found != nil {
		return "give " + flagsOf(found[1], " or ")
	}
	if found := onlyOne.FindStringSubmatch(text); found != nil {
		return flagsOf(found[1], " and ") + " cannot be combined: leave one of them out"
	}
	names := strings.Fields(suggested)
	if len(names) == 0 {
		return text
	}
	slices.Sort(names) // one that is alike in two ways is named twice
	return fmt.Sprintf("%s; did you mean %s?", text, strings.Join(slices.Compact(names), " or "))
}
