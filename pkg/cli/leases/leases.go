// Package leases is "kubectl runs leases".
package leases

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// ledger is one "kubectl runs leases".
type ledger struct {
	*session.Session
	output *session.Output
	all    bool
	open   bool
	closed bool
	owner  string
	since  string
	pods   bool
}

// Command returns "kubectl runs leases".
func Command(s *session.Session) *cobra.Command {
	l := &ledger{Session: s}
	cmd := &cobra.Command{
		Use:        "leases [RUN]",
		SuggestFor: []string{"ledger", "holdings"},
		Short:      "List GPU leases (leases.rq.davidlangworthy.io): who held which GPUs, and who paid",
		Long: `List GPU leases: who held which GPUs from when to when, and which envelope of which Budget paid.

There is a line for each Run and payer, or with --pods and -o wide a line for each GPU lease. GPUS are held now;
CLOSURES says why GPU leases have closed.

A GPU lease is a leases.rq.davidlangworthy.io (short name gl), not the Lease of coordination.k8s.io. There is one for
each pod of a Run. GPU leases stay when they are closed and when their Run is deleted, so you can also name a deleted
Run.

PAYER is the Budget and its envelope, OWNER the owner of the Budget; RUN-OWNER, in the wide format, is the owner of
the Run. GPU-HOURS are what is charged: the hours held times the GPUs times the rate, which is 1 except for spares and
opportunistic work; an open GPU lease counts until now.

-o csv prints a header and a line for each GPU lease, quoted as in RFC 4180: namespace, run, run_owner, payer_owner,
budget, envelope, relation, role, node, gpus, start, end (empty while open), hours, rate, gpu_hours, gpu_seconds,
reason, closure_reason, lease, cause, lost_gpu_seconds. Hours have five decimals, rounded down. gpu_seconds are exact:
their sums are what Budgets are charged. lost_gpu_seconds is the work that the Run lost, on all its GPUs, when the GPU
lease closed, and cause is what caused it. With --since, a GPU lease that began earlier is still listed as a whole. The
scheduler deletes GPU leases that have been closed for longer than its ledgerRetention, 30 days by default.`,
		Example: `  # Who pays for a Run
  kubectl runs leases resnet-small

  # The nodes that its pods are and were on, and why each ended
  kubectl runs leases resnet-small --pods

  # What the owners below org:ai:rai pay for now, in all namespaces
  kubectl runs leases -A --open --owner 'org:ai:rai*'

  # What was held in the last 30 days, for a spreadsheet
  kubectl runs leases -A --since 30d -o csv > leases.csv`,
		Args:              session.RunNames(0, 1),
		RunE:              s.OnRuns(l.run),
		ValidArgsFunction: s.CompleteRuns,
	}
	l.output = session.NewOutput(cmd, "", "wide, csv, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE")
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "List the GPU leases of all namespaces.")
	cmd.Flags().BoolVar(&l.open, "open", false, "Only GPU leases that are open.")
	cmd.Flags().BoolVar(&l.closed, "closed", false, "Only GPU leases that are closed.")
	cmd.Flags().StringVar(&l.owner, "owner", "",
		"Only GPU leases that this owner pays for; a trailing * makes it a prefix.")
	cmd.Flags().BoolVar(&l.pods, "pods", false, "Print a line for each GPU lease: a Run has one for each pod.")
	cmd.Flags().StringVar(&l.since, "since", "",
		"Only GPU leases that were open at any time since then: 12h, 30d, 2026-01-31 or 2026-01-31T00:00:00Z.")
	cmd.MarkFlagsMutuallyExclusive("open", "closed")
	session.Must(cmd.RegisterFlagCompletionFunc("owner", s.CompleteOwners))
	return cmd
}

func (l *ledger) run(ctx context.Context, args []string) error {
	since, err := session.ParseSince(l.since, l.Now())
	if err != nil {
		return err
	}
	if !l.output.Is("csv") {
		if err := l.output.Check(); err != nil {
			return err
		}
	}
	c, namespace, _, err := l.Connect()
	if err != nil {
		return err
	}
	if l.all {
		namespace = ""
	}
	leases, err := l.ReadLeases(ctx, c, namespace, args, l.state())
	if err != nil {
		return err
	}
	leases = slices.DeleteFunc(leases, func(lease rqv1.Lease) bool {
		return !session.OwnerMatches(l.owner, lease.Spec.Payer.Owner) || !openSince(&lease, since)
	})
	return l.print(ctx, c, leases, args, namespace)
}

func (l *ledger) print(ctx context.Context, c client.Client, leases []rqv1.Lease, args []string,
	namespace string) error {
	if l.output.Is("csv") {
		return writeCSV(l.Out, leases, l.Now())
	}
	if !l.output.ForPeople() {
		return l.output.PrintList(view.Pointers[rqv1.Lease](leases), l.Out)
	}
	if len(leases) == 0 {
		what := "GPU leases"
		if len(args) > 0 {
			what += " of Run " + l.Called(args[0])
		}
		fmt.Fprintln(l.ErrOut, view.NothingFound(what, namespace))
		return nil
	}
	session.Show(ctx, c, namespace, &leases)
	tableOf := summaryTable
	if l.pods || l.output.Wide() {
		tableOf = leaseTable
	}
	table, err := tableOf(leases, l.Now())
	if err != nil {
		return err
	}
	if err := session.PrintTable(table, l.Out, l.output.Wide(), l.all); err != nil {
		return err
	}
	if len(args) > 0 && !l.pods && !l.output.Wide() {
		fmt.Fprintln(l.ErrOut, "--pods shows each GPU lease.")
	}
	return nil
}

// state selects open or closed GPU leases on the server.
func (l *ledger) state() client.ListOption {
	switch {
	case l.open:
		return session.LeasesOpen
	case l.closed:
		return session.LeasesClosed
	}
	return &client.ListOptions{}
}
