// Package cancel is "kubectl runs cancel".
package cancel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// cancel is one "kubectl runs cancel".
type cancel struct {
	*session.Session
	all      bool
	selector string
	finished bool
	yes      bool
}

// Command returns "kubectl runs cancel".
func Command(s *session.Session) *cobra.Command {
	c := &cancel{Session: s}
	cmd := &cobra.Command{
		Use:        "cancel RUN...",
		SuggestFor: []string{"delete", "stop", "kill", "rm", "scancel"},
		Short:      "End Runs, or take them out of the queue",
		Long: `Cancel Runs by deleting them. A waiting Run leaves the queue. The pods of a running Run are told to end and
have their grace period; its GPUs are free when the pods are gone. Its GPU leases stay in the ledger.

On a terminal the command asks before it cancels more than one Run; --yes answers. Without a terminal, --all and -l need
--yes, but Runs given by name do not.

A Run that has ended is left as it is, because its pods keep their logs. --finished deletes it too. A Run that
represents pods of others, such as those of a JobSet, ends when those pods are deleted; the command says how.`,
		Example: `  # Cancel a Run
  kubectl runs cancel hello

  # Cancel all Runs of a sweep
  kubectl runs cancel -l sweep=lr

  # Delete a Run that has ended, its pods and their logs
  kubectl runs cancel hello --finished`,
		Args: func(cmd *cobra.Command, names []string) error {
			if chosen := c.all || c.selector != ""; chosen == (len(names) > 0) {
				return session.Fail(session.ExitUsage, "name Runs: %s, or use --all or -l SELECTOR", cmd.UseLine())
			}
			return session.RunNames(0, math.MaxInt)(cmd, names)
		},
		RunE:              s.OnRuns(c.run),
		ValidArgsFunction: s.CompleteMoreRuns,
	}
	cmd.Flags().BoolVar(&c.all, "all", false, "Cancel all Runs of the namespace.")
	cmd.Flags().StringVarP(&c.selector, "selector", "l", "", "Cancel the Runs with these labels, such as sweep=lr.")
	cmd.Flags().BoolVar(&c.finished, "finished", false, "Also delete Runs that have ended.")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "Do not ask.")
	cmd.MarkFlagsMutuallyExclusive("all", "selector")
	return cmd
}

func (c *cancel) run(ctx context.Context, names []string) error {
	selector, err := labels.Parse(c.selector)
	if err != nil {
		return session.Fail(session.ExitUsage, "--selector: %v", err)
	}
	api, namespace, _, err := c.Connect()
	if err != nil {
		return err
	}
	runs, missing := []rqv1.Run(nil), error(nil)
	if len(names) > 0 {
		runs, missing = c.named(ctx, api, namespace, names)
	} else if runs, err = c.selected(ctx, api, namespace, selector); err != nil {
		return err
	}
	if len(runs) == 0 {
		return missing
	}
	if err := c.agree(ctx, runs, namespace, len(names) > 0); err != nil {
		return err
	}
	errs := []error{missing}
	for i := range runs {
		errs = append(errs, c.cancel(ctx, api, &runs[i]))
	}
	return errors.Join(errs...)
}

// named reads Runs by their names, those that can be canceled, and says of each of the others why it cannot be.
func (c *cancel) named(ctx context.Context, api client.Client, namespace string, names []string) ([]rqv1.Run, error) {
	var runs []rqv1.Run
	var errs []error
	for _, name := range names {
		var run rqv1.Run
		err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &run)
		switch {
		case err != nil:
			err = c.NotFoundInWords(err, namespace, name)
		case run.Spec.Theirs():
			err = session.Fail(session.ExitError, "%s", theirs(&run))
		case run.Ended() && !c.finished:
			err = session.Fail(session.ExitError, "Run %s has ended: it is %s; to delete it and what its pods printed: "+
				"kubectl runs cancel -n %s %s --finished", name, view.PhaseOf(&run), namespace, name)
		case !slices.ContainsFunc(runs, func(r rqv1.Run) bool { return r.Name == name }):
			runs = append(runs, run)
		}
		errs = append(errs, err)
	}
	return runs, errors.Join(errs...)
}

// theirs says how to end a Run that stands for others' pods.
func theirs(run *rqv1.Run) string {
	of := run.Spec.Pods
	kind := strings.ToLower(of.Kind)
	switch {
	case kind == "group":
		return fmt.Sprintf("Run %s ends when its pods are deleted, which jobtree did not create: kubectl delete pods -n %s "+
			"-l %s=%s", session.NameOf(run), run.Namespace, rqv1.LabelRun, run.Name)
	case of.APIGroup != "":
		kind += "." + of.APIGroup
	}
	return fmt.Sprintf("Run %s represents pods that jobtree did not create, and ends with them: kubectl delete -n %s "+
		"%s %s",
		session.NameOf(run), run.Namespace, kind, of.Name)
}

// selected reads the Runs that labels select, those that can be canceled.
func (c *cancel) selected(ctx context.Context, api client.Client, namespace string,
	selector labels.Selector) ([]rqv1.Run, error) {
	var list rqv1.RunList
	err := api.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, err
	}
	runs := slices.DeleteFunc(list.Items, func(run rqv1.Run) bool {
		return run.Spec.Theirs() || run.Ended() && !c.finished
	})
	if len(runs) == 0 {
		fmt.Fprintln(c.ErrOut, view.NothingFound("Runs to cancel", namespace))
	}
	return runs, nil
}

// agree asks whoever sits at the terminal before more than one Run is canceled.
func (c *cancel) agree(ctx context.Context, runs []rqv1.Run, namespace string, named bool) error {
	asks := c.AtTerminal()
	switch {
	case c.yes || len(runs) == 1 && named || named && !asks:
		return nil
	case !asks:
		return session.Fail(session.ExitUsage, "%s would be canceled in namespace %s; use --yes to cancel without being "+
			"asked",
			view.Counted(len(runs), "Run"), namespace)
	}
	table := &metav1.Table{ColumnDefinitions: session.Columns("Name", "Width", "Phase", "Age")}
	for i := range runs {
		table.Rows = append(table.Rows, session.Row(&runs[i], runs[i].Name, view.WidthOf(&runs[i]),
			string(view.PhaseOf(&runs[i])), duration.HumanDuration(c.Now().Sub(runs[i].CreationTimestamp.Time))))
	}
	if err := session.PrintTable(table, c.ErrOut, false, false); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOut, "Cancel %s in namespace %s? [y/N] ", view.Counted(len(runs), "Run"), namespace)
	agreed, err := c.Agrees(ctx)
	if err == nil && !agreed {
		err = session.Fail(session.ExitError, "nothing was canceled")
	}
	return err
}

// cancel deletes one Run, and not another one that has been given its name meanwhile.
func (c *cancel) cancel(ctx context.Context, api client.Client, run *rqv1.Run) error {
	err := api.Delete(ctx, run, client.Preconditions{UID: &run.UID})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		fmt.Fprintf(c.Out, "Run %s is gone already\n", run.Name)
		return nil
	case err != nil:
		return err
	}
	held := int32(0)
	if run.Status.Width != nil && !run.Ended() {
		held = run.Status.Width.Allocated
	}
	switch held {
	case 0:
		fmt.Fprintf(c.Out, "Run %s canceled\n", run.Name)
	case 1:
		fmt.Fprintf(c.Out, "Run %s canceled: its GPU is free when its pod is gone\n", run.Name)
	default:
		fmt.Fprintf(c.Out, "Run %s canceled: its %d GPUs are free when its pods are gone\n", run.Name, held)
	}
	return nil
}
