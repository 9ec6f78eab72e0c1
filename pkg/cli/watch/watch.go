// Package watch is "kubectl runs watch".
package watch

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// runWatch is one "kubectl runs watch".
type runWatch struct {
	*session.Session
	output  *session.Output
	all     bool
	until   string
	timeout time.Duration

	namespace string
	names     []string
	phase     rqv1.RunPhase // of --until; empty means the end of every Run
	report    *reporter
	runs      map[types.NamespacedName]*rqv1.Run
	last      map[string]*rqv1.Run // named Runs that are gone, as they were
}

// Command returns "kubectl runs watch".
func Command(s *session.Session) *cobra.Command {
	w := &runWatch{Session: s}
	cmd := &cobra.Command{
		Use:        "watch [RUN...]",
		SuggestFor: []string{"wait", "follow", "tail"},
		Short:      "Follow Runs as they change",
		Long: `Follow Runs: a line for each change of phase, width, start, risk or message, and for GPU leases
(leases.rq.davidlangworthy.io) that open, close or move: similar ones together, or each one with -o wide. A Run's line
shows GPUs in use / GPUs wanted, a change of width that is under way, and, for a Run that has spares or where they are
others than its width has, how many GPU leases are open: active ones of ranks, spare ones, and opportunistic ones of an
opportunistic Run's shards. Without names all Runs of the namespace are followed until the command is interrupted.

With names the command ends by itself when all of them are Completed (exit code 0), or Failed or deleted before they
ended (3). With --until it ends when all of them are in that phase, or, for Running, past it. It goes on through
restarts of the API server.

With -o json, a line each, or yaml the Runs themselves are printed, each time that they or their GPU leases have
changed. Beside what the API has they carry watch: time, leases (the open ones: active, spare, borrowed) and changes[]
(what, time, verb, reason, after, role, cohort, budget, envelope, payer, relation, leases, gpus, groups[], indexes[],
nodes[], from[]).`,
		Example: `  # Follow a Run to its end
  kubectl runs watch resnet-small

  # In a script: wait for the start, at most ten minutes
  kubectl runs watch resnet-small --until Running --timeout 10m`,
		RunE:              s.OnRuns(w.run),
		ValidArgsFunction: s.CompleteMoreRuns,
	}
	w.output = session.NewOutput(cmd, "",
		"wide (a line for every GPU lease), json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE")
	cmd.Flags().BoolVarP(&w.all, "all-namespaces", "A", false, "Follow the Runs of all namespaces.")
	cmd.Flags().StringVar(&w.until, "until", "", "End when the named Runs are in this phase: "+strings.Join(view.Phases,
		", ")+".")
	session.DurationVar(cmd.Flags(), &w.timeout, "timeout", 0,
		"End after this time with exit code 4, such as 90s or 10m; 0 never ends.")
	session.Must(cmd.RegisterFlagCompletionFunc("until", cobra.FixedCompletions(view.Phases,
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (w *runWatch) run(ctx context.Context, names []string) error {
	if err := w.completeFlags(names); err != nil {
		return err
	}
	c, namespace, _, err := w.Connect()
	if err != nil {
		return err
	}
	if !w.all {
		w.namespace = namespace
	}
	for _, name := range names {
		var run rqv1.Run
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &run); err != nil {
			return w.NotFoundInWords(err, namespace, name)
		}
	}
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, w.timeout, errTimeout)
		defer cancel()
	}
	return w.follow(ctx, c)
}

func (w *runWatch) completeFlags(names []string) error {
	if w.all && len(names) > 0 {
		return session.Fail(session.ExitUsage, "Run names belong to one namespace: leave out -A or the names")
	}
	if w.until != "" {
		if len(names) == 0 {
			return session.Fail(session.ExitUsage, "--until needs the names of Runs")
		}
		phase, err := view.ParsePhases([]string{w.until})
		if err != nil {
			return err
		}
		w.phase = phase[0]
	}
	if w.timeout < 0 {
		return session.Fail(session.ExitUsage, "--timeout must not be negative")
	}
	w.names = names
	w.runs = map[types.NamespacedName]*rqv1.Run{}
	w.last = map[string]*rqv1.Run{}
	w.report = &reporter{
		out:        w.Out,
		now:        w.Now,
		colours:    printers.AllowsColorOutput(w.Out),
		namespaces: w.all,
		eachLease:  w.output.Wide(),
	}
	if w.output.ForPeople() {
		return nil
	}
	printer, err := w.output.Printer()
	if w.output.Is("json") {
		printer = onOneLine(printer)
	}
	w.report.print = func(run *rqv1.Run, seen sighting) error { return printSighting(printer, w.Out, run, seen) }
	return err
}

// seen takes note of a Run and has it told.
func (w *runWatch) seen(run *rqv1.Run) {
	if !w.follows(run.Name) {
		return
	}
	delete(w.last, run.Name)
	key := client.ObjectKeyFromObject(run)
	last := w.runs[key]
	w.runs[key] = run
	if last == nil || last.ResourceVersion != run.ResourceVersion {
		w.report.run(run)
	}
}

// gone takes note of a deleted Run. The version of a deletion that was missed is not known.
func (w *runWatch) gone(run *rqv1.Run, version string) {
	if !w.follows(run.Name) {
		return
	}
	delete(w.runs, client.ObjectKeyFromObject(run))
	w.last[run.Name] = run
	w.report.gone(run, version)
}

func (w *runWatch) follows(name string) bool {
	return len(w.names) == 0 || slices.Contains(w.names, name)
}
