// Package budgets is "kubectl runs budgets".
package budgets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// Command returns "kubectl runs budgets".
func Command(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "budgets",
		SuggestFor: []string{"quota", "usage", "sshare"},
		Aliases:    []string{"budget"},
		Short:      "See what owners may hold, what they hold, and who would pay for a Run",
		Long: `See what owners may hold (budgets.rq.davidlangworthy.io), what is held and spent, and who would pay for a Run.

The numbers come from the status of each Budget, which the scheduler keeps. To edit Budgets, use "kubectl edit
budget".`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return session.Fail(session.ExitUsage, "%q is not a command of %q; choose from usage, explain", args[0],
					cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(usageCommand(s), coverCommand(s))
	return cmd
}

// budgetUsage is one "kubectl runs budgets usage".
type budgetUsage struct {
	*session.Session
	output *session.Output
	owner  string
	tree   bool
}

func usageCommand(s *session.Session) *cobra.Command {
	u := &budgetUsage{Session: s}
	cmd := &cobra.Command{
		Use:     "usage",
		Aliases: []string{"list"},
		Short:   "Show what is held of each envelope, and the GPU-hours spent and left",
		Long: `Show what is held of each envelope of each Budget, and the GPU-hours spent and left.

Every GPU that is held counts once: as OWNED by the owner's own Runs, as used by its FAMILY, as LENT to borrowers
outside the family, as SPARE, or as OVERDRAFT. Overdraft is what exceeds the envelope after an edit, or once its window
has closed or its GPU-hours have run out. FREE may still be taken. GPU-HOURS SPENT and LEFT count the envelope's window
up to now, at the present rate. RUNS OUT is when that rate uses up what is left, if that is before the window ends.

LOST is the GPU-hours of work that was not saved when GPU leases closed within the envelope's window, whether these
leases are still kept or not. -o wide shows the cause: Node, Program, User, or Scheduler (cuts). The loss is counted for
the envelope that paid for the rank that ended, and includes what the Run's other ranks lost by it, whoever paid for
them.

With -o json or yaml the same is printed as data:

  at                when the numbers hold
  envelopes[]       owner, budget, envelope, flavor, start, end, observedAt (absent until the scheduler has looked at
                    the envelope: its numbers are 0 then); in GPUs: concurrency, ownedGPUs, familyGPUs, lentGPUs,
                    spareGPUs, overdraftGPUs, opportunisticGPUs, freeGPUs, lendableGPUs; in GPU-hours: maxGPUHours,
                    spentGPUHours, leftGPUHours, promisedGPUHours, hourlyGPUHours, lostGPUHours, and lostByCause[] of
                    cause and gpuHours; runsOut
  aggregateCaps[]   owner, budget, cap, flavor, envelopes[], maxConcurrency, usedGPUs, freeGPUs, and GPU-hours as above,
                    except those that were lost
  conditions[]      owner, budget, type (Overdrawn or Circular), reason, message: of Budgets that have a problem

GPUs are whole numbers. GPU-hours are decimals with five places, rounded down. Without a limit there is no max, left or
free.`,
		Example: `  # One team and all below it, as a tree
  kubectl runs budgets usage --owner 'org:ai*' --tree

  # GPUs that are free now, by GPU type
  kubectl runs budgets usage -o json | jq '.envelopes | group_by(.flavor)[] | {(.[0].flavor): map(.freeGPUs) | add}'`,
		Args: cobra.NoArgs,
		RunE: s.RunE(u.run),
	}
	u.output = session.NewAnswerOutput(cmd, "wide, json, yaml, name")
	cmd.Flags().StringVar(&u.owner, "owner", "", "Only Budgets of this owner; a trailing * makes it a prefix.")
	cmd.Flags().BoolVar(&u.tree, "tree", false, "Draw the family as a tree, with a bar for each envelope.")
	session.Must(cmd.RegisterFlagCompletionFunc("owner", s.CompleteOwners))
	return cmd
}

func (u *budgetUsage) run(ctx context.Context, _ []string) error {
	if err := u.output.Check(); err != nil {
		return err
	}
	if format := *u.output.Flags.OutputFormat; u.tree && format != "" {
		return session.Fail(session.ExitUsage, "--tree cannot be combined with --output %s: leave one of them out", format)
	}
	c, _, _, err := u.Connect()
	if err != nil {
		return err
	}
	all, err := session.ReadBudgets(ctx, c)
	if err != nil {
		return err
	}
	shown := slices.DeleteFunc(slices.Clone(all), func(b rqv1.Budget) bool {
		return !session.OwnerMatches(u.owner,
			b.Spec.Owner)
	})
	if len(shown) == 0 && u.output.ForPeople() {
		fmt.Fprintln(u.ErrOut, noBudgets(u.owner))
		return nil
	}
	return u.print(all, shown)
}

func (u *budgetUsage) print(all, shown []rqv1.Budget) error {
	data, err := UsageOf(shown, u.Now())
	if err != nil {
		return err
	}
	if !u.output.ForPeople() {
		names := make([]*session.Answer, len(shown))
		for i := range shown {
			names[i] = session.About("Budget", shown[i].Name)
		}
		return u.output.PrintData(u.Out, data, names...)
	}
	warnOf(u.Session, shown)
	if u.tree {
		return writeTree(u.Out, newTree(all, shown, data), view.BarsFor(u.Out), u.Width())
	}
	return writeUsage(u.Out, data, u.FormOf(u.output))
}

// budgetsNamed is how many Budgets a warning names.
const budgetsNamed = 4

// warnOf says which Budgets' numbers may not hold any more.
func warnOf(s *session.Session, budgets []rqv1.Budget) {
	names := outdated(budgets, s.Now())
	if len(names) == 0 {
		return
	}
	if more := len(names) - budgetsNamed; more > 0 {
		names = append(names[:budgetsNamed], fmt.Sprintf("and %d more", more))
	}
	fmt.Fprintf(s.ErrOut,
		"The scheduler has not processed the latest version of these Budgets yet: %s. If that lasts, check that "+
			"jobtree-scheduler is running.\n",
		strings.Join(names, ", "))
}

// lately is how old a status may be while GPU-hours are spent; the scheduler writes it once a minute then.
const lately = 10 * time.Minute

// outdated names the Budgets whose status is not about their present spec, or old although GPU-hours are spent.
func outdated(budgets []rqv1.Budget, now time.Time) []string {
	var names []string
	for i := range budgets {
		b := &budgets[i]
		spends := slices.ContainsFunc(b.Status.Envelopes, func(e rqv1.EnvelopeStatus) bool {
			return e.GPUHours != nil &&
				e.GPUHours.Hourly != ""
		})
		if at := b.Status.ObservedAt; at == nil || b.Status.ObservedGeneration < b.Generation || spends &&
			now.Sub(at.Time) > lately {
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
