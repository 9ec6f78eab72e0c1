// Package list is "kubectl runs list".
package list

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// runList is one "kubectl runs list".
type runList struct {
	*session.Session
	output   *session.Output
	all      bool
	selector string
	phases   []string
	owner    string
	mine     bool
	sortBy   string
	bare     bool // without a header
	watch    bool

	every time.Duration // between two looks
}

// Command returns "kubectl runs list".
func Command(s *session.Session) *cobra.Command {
	return (&runList{Session: s, every: time.Second}).command()
}

func (l *runList) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "list",
		Aliases:    []string{"ls"},
		SuggestFor: []string{"get", "ps", "queue", "squeue", "jobs"},
		Short:      "List Runs",
		Long: `List Runs (runs.rq.davidlangworthy.io): what they ask for, what they have, and where they are.

WIDTH is GPUs in use / GPUs wanted, without spares. SPARES is spare GPUs that stand by / spare GPUs wanted at this
width. MESSAGE begins with the risk that the Run is cut, or with its start. The wide format has separate columns for
these, for the change of width in progress, and for planned maintenance of the Run's nodes. For more, see "kubectl runs
plan".`,
		Example: `  # What waits, and for what, in all namespaces
  kubectl runs list -A --phase Pending

  # The Runs that carry a label, with their GPU type, groups and funding
  kubectl runs list -l team=vision -o wide

  # The Runs of an owner and of those below, the widest first, as they change
  kubectl runs list -A --owner 'org:ai:rai*' --sort-by gpus --watch`,
		Args: cobra.NoArgs,
		RunE: l.RunE(l.run),
	}
	l.output = session.NewOutput(cmd, "", "wide, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE")
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "List the Runs of all namespaces.")
	cmd.Flags().StringVarP(&l.selector, "selector", "l", "", "Label selector, such as team=vision,tier!=dev.")
	cmd.Flags().StringSliceVar(&l.phases, "phase", nil, "Only Runs in these phases: "+strings.Join(view.Phases, ", ")+".")
	cmd.Flags().StringVar(&l.owner, "owner", "", "Only Runs of this owner; a trailing * makes it a prefix.")
	cmd.Flags().BoolVar(&l.mine, "mine", false, "Only Runs that you have submitted.")
	cmd.Flags().StringVar(&l.sortBy, "sort-by", "", "Order by "+strings.Join(sortKeys, ", ")+
		". Default: namespace and name.")
	cmd.Flags().BoolVar(&l.bare, "no-headers", false, "Print no header line.")
	cmd.Flags().BoolVarP(&l.watch, "watch", "w", false, "Keep running, and list the Runs again whenever the list changes.")
	session.Must(cmd.RegisterFlagCompletionFunc("owner", l.CompleteOwners))
	session.Must(cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions(sortKeys,
		cobra.ShellCompDirectiveNoFileComp)))
	session.Must(cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(view.Phases,
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (l *runList) run(ctx context.Context, _ []string) error {
	wanted, err := view.ParsePhases(l.phases)
	if err != nil {
		return err
	}
	if err := l.output.Check(); err != nil {
		return err
	}
	selector, err := labels.Parse(l.selector)
	if err != nil {
		return session.Fail(session.ExitUsage, "--selector: %v", err)
	}
	if err := l.checkOrder(); err != nil {
		return err
	}
	c, namespace, _, err := l.Connect()
	if err != nil {
		return err
	}
	if l.all {
		namespace = ""
	}
	who := ""
	if l.mine {
		if who, err = l.Me(ctx, c); err != nil {
			return err
		}
	}
	return l.Repeat(ctx, l.every, !l.watch, func(ctx context.Context) (session.Shown, error) {
		var list rqv1.RunList
		if err := l.List(ctx, c, namespace, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return session.Shown{}, err
		}
		runs := slices.DeleteFunc(list.Items, func(run rqv1.Run) bool {
			return len(wanted) > 0 && !slices.Contains(wanted, view.PhaseOf(&run)) ||
				!session.OwnerMatches(l.owner, run.Spec.Owner) || l.mine && run.Spec.Submitter != who
		})
		l.order(runs)
		state := stateOf(runs)
		var out bytes.Buffer
		note, err := l.print(ctx, c, namespace, runs, &out)
		return session.Shown{Text: out.Bytes(), Note: note, State: state}, err
	})
}

// stateOf tells the Runs of two looks apart.
func stateOf(runs []rqv1.Run) string {
	var state strings.Builder
	for i := range runs {
		fmt.Fprintf(&state, "%s %s\n", runs[i].UID, runs[i].ResourceVersion)
	}
	return state.String()
}

// print prints Runs, and returns what is to be said of that.
func (l *runList) print(ctx context.Context, c client.Client, namespace string, runs []rqv1.Run,
	out io.Writer) (note string, err error) {
	if !l.output.ForPeople() {
		return "", l.output.PrintList(view.Pointers[rqv1.Run](runs), out)
	}
	if len(runs) == 0 {
		return view.NothingFound("Runs", namespace) + "\n", nil
	}
	spares, err := l.standBy(ctx, c, namespace, runs)
	if err != nil {
		note = fmt.Sprintf("GPU leases, which say what stands by, could not be read: %s\n", session.Refusal(err))
	}
	session.NamesOf(runs).Into(&runs)
	options := printers.PrintOptions{Wide: l.output.Wide(), WithNamespace: l.all, NoHeaders: l.bare}
	table := runTable(runs, spares, l.output.Wide(), l.Now())
	return note, session.PrintTableAs(table, out, options, l.Width())
}

// standBy counts the GPUs that stand by for Runs, by their UIDs. It asks nothing when none of them has spares.
func (l *runList) standBy(ctx context.Context, c client.Client, namespace string,
	runs []rqv1.Run) (map[types.UID]int32, error) {
	if !slices.ContainsFunc(runs, func(run rqv1.Run) bool { return run.Spec.GroupSpares() > 0 }) {
		return nil, nil
	}
	var spares rqv1.LeaseList
	err := l.List(ctx, c, namespace, &spares, session.LeasesOpen,
		client.MatchingLabels{rqv1.LabelRole: string(rqv1.RoleSpare)})
	if err != nil {
		return nil, err
	}
	gpus := map[types.UID]int32{}
	for i := range spares.Items {
		gpus[spares.Items[i].Spec.RunRef.UID] += spares.Items[i].GPUs()
	}
	return gpus, nil
}
