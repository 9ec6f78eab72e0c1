package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func (s *session) budgetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "budgets",
		Aliases: []string{"budget"},
		Short:   "See what owners may hold, what they hold, and who would pay for a Run",
		Long: `See what owners may hold (budgets.rq.davidlangworthy.io), what is held and spent, and who would pay for a Run.

The numbers are those that the scheduler keeps in the status of each Budget. To edit Budgets use "kubectl edit budget".`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fail(exitUsage, "%q is no command of %q; choose from usage, explain", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.usageCommand(), s.coverCommand())
	return cmd
}

// readBudgets returns all Budgets, ordered by name.
func readBudgets(ctx context.Context, c client.Client) ([]rqv1.Budget, error) {
	var list rqv1.BudgetList
	if err := c.List(ctx, &list); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// budgetUsage is one "kubectl runs budgets usage".
type budgetUsage struct {
	*session
	output *output
	owner  string
	tree   bool
}

func (s *session) usageCommand() *cobra.Command {
	u := &budgetUsage{session: s}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what is held of each envelope, and the GPU-hours spent and left",
		Long: `Show what is held of each envelope of each Budget, and the GPU-hours spent and left.

Every GPU that is held counts once: OWNED by the owner's own Runs, lent to its FAMILY or LENT to borrowers outside it,
held by a SPARE, or OVERDRAFT: beyond what the envelope allows, after an edit or when its window closed or its GPU-hours
ran out. FREE may still be taken. GPU-HOURS SPENT and LEFT are counted in the envelope's window and carried on to now at
the present rate; RUNS OUT is when that rate spends what is left, if it does so before the window ends.

With -o json or yaml the same is printed as data:

  at                when the numbers hold
  envelopes[]       owner, budget, envelope, flavor, start, end, observedAt (absent until the scheduler has looked at the
                    envelope: its numbers are 0 then); in GPUs: concurrency, ownedGPUs, familyGPUs, lentGPUs, spareGPUs,
                    overdraftGPUs, opportunisticGPUs, freeGPUs, lendableGPUs; in GPU-hours: maxGPUHours,
                    spentGPUHours, leftGPUHours, promisedGPUHours, hourlyGPUHours; runsOut
  aggregateCaps[]   owner, budget, cap, flavor, envelopes[], maxConcurrency, usedGPUs, freeGPUs, and GPU-hours as above
  conditions[]      owner, budget, type (Overdrawn or Circular), reason, message: of Budgets with which something is wrong

GPUs are whole numbers; GPU-hours are decimals with five places, cut off. What has no limit has no max, left or free.`,
		Example: `  # One team and all below it, as a tree
  kubectl runs budgets usage --owner 'org:ai*' --tree

  # GPUs that can be had now, by flavor
  kubectl runs budgets usage -o json | jq '.envelopes | group_by(.flavor)[] | {(.[0].flavor): map(.freeGPUs) | add}'`,
		Args: cobra.NoArgs,
		RunE: s.runE(u.run),
	}
	u.output = newAnswerOutput(cmd, "wide, json, yaml, name")
	cmd.Flags().StringVar(&u.owner, "owner", "", "Only Budgets of this owner; a trailing * makes it a prefix.")
	cmd.Flags().BoolVar(&u.tree, "tree", false, "Draw the family as a tree, with a bar for each envelope.")
	must(cmd.RegisterFlagCompletionFunc("owner", s.completeOwners))
	return cmd
}

func (u *budgetUsage) run(ctx context.Context, _ []string) error {
	if err := u.output.check(); err != nil {
		return err
	}
	if format := *u.output.flags.OutputFormat; u.tree && format != "" {
		return fail(exitUsage, "--tree is for people: it has no --output %s; leave one of them out", format)
	}
	c, _, _, err := u.connect()
	if err != nil {
		return err
	}
	all, err := readBudgets(ctx, c)
	if err != nil {
		return err
	}
	shown := slices.DeleteFunc(slices.Clone(all), func(b rqv1.Budget) bool { return !ownerMatches(u.owner, b.Spec.Owner) })
	if len(shown) == 0 && u.output.forPeople() {
		fmt.Fprintln(u.ErrOut, noBudgets(u.owner))
		return nil
	}
	return u.print(all, shown)
}

func (u *budgetUsage) print(all, shown []rqv1.Budget) error {
	data, err := usageOf(shown, u.now())
	if err != nil {
		return err
	}
	if !u.output.forPeople() {
		names := make([]*answer, len(shown))
		for i := range shown {
			names[i] = about("Budget", shown[i].Name)
		}
		return u.output.printData(u.Out, data, names...)
	}
	u.warnOf(shown)
	if u.tree {
		return writeTree(u.Out, newTree(all, shown, data), barsFor(u.Out))
	}
	return writeUsage(u.Out, data, u.output.wide())
}

// budgetsNamed is how many Budgets a warning names.
const budgetsNamed = 4

// warnOf says which Budgets' numbers may not hold any more.
func (s *session) warnOf(budgets []rqv1.Budget) {
	names := outdated(budgets, s.now())
	if len(names) == 0 {
		return
	}
	if more := len(names) - budgetsNamed; more > 0 {
		names = append(names[:budgetsNamed], fmt.Sprintf("and %d more", more))
	}
	fmt.Fprintf(s.ErrOut, "The scheduler has not looked lately at these Budgets as they are now: %s. If that lasts, see whether jobtree-scheduler is running.\n",
		strings.Join(names, ", "))
}

// lately is how old a status may be while GPU-hours are spent; the scheduler writes it once a minute then.
const lately = 10 * time.Minute

// outdated names the Budgets whose status is not about their present spec, or old although GPU-hours are spent.
func outdated(budgets []rqv1.Budget, now time.Time) []string {
	var names []string
	for i := range budgets {
		b := &budgets[i]
		spends := slices.ContainsFunc(b.Status.Envelopes, func(e rqv1.EnvelopeStatus) bool { return e.GPUHours != nil && e.GPUHours.Hourly != "" })
		if at := b.Status.ObservedAt; at == nil || b.Status.ObservedGeneration < b.Generation || spends && now.Sub(at.Time) > lately {
			names = append(names, b.Name)
		}
	}
	return names
}

func noBudgets(owner string) string {
	if owner == "" {
		return "No Budgets found."
	}
	return fmt.Sprintf("No Budgets of owner %s found; \"kubectl runs budgets usage\" shows all.", owner)
}
