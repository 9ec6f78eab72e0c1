package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// phases of a Run, in the order of its life.
var phases = []string{string(rqv1.RunPending), string(rqv1.RunRunning), string(rqv1.RunCompleted), string(rqv1.RunFailed)}

// runList is one "kubectl runs list".
type runList struct {
	*session
	output   *output
	all      bool
	selector string
	phases   []string
}

func (s *session) listCommand() *cobra.Command {
	l := &runList{session: s}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List Runs",
		Long: `List Runs (runs.rq.davidlangworthy.io): what they ask for, what they have, and where they are.

WIDTH is the GPUs that are bound and those that the Run tends to, spares apart. SPARES is the GPUs that stand by and those
that are to at this width. The wide format adds the change of width that is under way, when a Run that waits is expected to
start, and the odds that a Run is cut when a Reservation activates, and when that is. For more see "kubectl runs plan".`,
		Example: `  # What waits, and for what, in all namespaces
  kubectl runs list -A --phase Pending

  # The Runs that carry a label, with their GPU type, groups and funding
  kubectl runs list -l team=vision -o wide`,
		Args: cobra.NoArgs,
		RunE: s.runE(l.run),
	}
	l.output = newOutput(cmd, "", "wide, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE")
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "List the Runs of all namespaces.")
	cmd.Flags().StringVarP(&l.selector, "selector", "l", "", "Label selector, such as team=vision,tier!=dev.")
	cmd.Flags().StringSliceVar(&l.phases, "phase", nil, "Only Runs in these phases: "+strings.Join(phases, ", ")+".")
	must(cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(phases, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (l *runList) run(ctx context.Context, _ []string) error {
	wanted, err := parsePhases(l.phases)
	if err != nil {
		return err
	}
	if err := l.output.check(); err != nil {
		return err
	}
	selector, err := labels.Parse(l.selector)
	if err != nil {
		return fail(exitUsage, "--selector: %v", err)
	}
	c, namespace, _, err := l.connect()
	if err != nil {
		return err
	}
	if l.all {
		namespace = ""
	}
	var list rqv1.RunList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return err
	}
	runs := slices.DeleteFunc(list.Items, func(run rqv1.Run) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, phaseOf(&run))
	})
	if !l.output.forPeople() {
		return l.output.printList(pointers[rqv1.Run](runs), l.Out)
	}
	if len(runs) == 0 {
		fmt.Fprintln(l.ErrOut, nothingFound("Runs", namespace))
		return nil
	}
	spares, err := standBy(ctx, c, namespace, runs)
	if err != nil {
		fmt.Fprintf(l.ErrOut, "GPU leases, which say what stands by, could not be read: %s\n", refusal(err))
	}
	return printTable(runTable(runs, spares, l.now()), l.Out, l.output.wide(), l.all)
}

// parsePhases accepts phases in any case.
func parsePhases(names []string) ([]rqv1.RunPhase, error) {
	var parsed []rqv1.RunPhase
	for _, name := range names {
		i := slices.IndexFunc(phases, func(phase string) bool { return strings.EqualFold(phase, name) })
		if i < 0 {
			return nil, fail(exitUsage, "%q is no phase of a Run; choose from %s", name, strings.Join(phases, ", "))
		}
		parsed = append(parsed, rqv1.RunPhase(phases[i]))
	}
	return parsed, nil
}

// phaseOf is the Run's phase; a Run without one is Pending.
func phaseOf(run *rqv1.Run) rqv1.RunPhase {
	if run.Status.Phase == "" {
		return rqv1.RunPending
	}
	return run.Status.Phase
}

func nothingFound(what, namespace string) string {
	if namespace == "" {
		return fmt.Sprintf("No %s found.", what)
	}
	return fmt.Sprintf("No %s found in namespace %s.", what, namespace)
}

// pointers makes API objects of the items of a list.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = P(&items[i])
	}
	return objects
}

// standBy counts the GPUs that stand by for Runs, by their UIDs. It asks nothing when none of them has spares.
func standBy(ctx context.Context, c client.Client, namespace string, runs []rqv1.Run) (map[types.UID]int32, error) {
	if !slices.ContainsFunc(runs, func(run rqv1.Run) bool { return run.Spec.GroupSpares() > 0 }) {
		return nil, nil
	}
	var spares rqv1.LeaseList
	err := c.List(ctx, &spares, client.InNamespace(namespace), leasesOpen, client.MatchingLabels{rqv1.LabelRole: string(rqv1.RoleSpare)})
	if err != nil {
		return nil, err
	}
	gpus := map[types.UID]int32{}
	for i := range spares.Items {
		gpus[spares.Items[i].Spec.RunRef.UID] += spares.Items[i].GPUs()
	}
	return gpus, nil
}
