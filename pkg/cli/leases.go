package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ledger is one "kubectl runs leases".
type ledger struct {
	*session
	output *output
	all    bool
	open   bool
	closed bool
	owner  string
	since  string
}

func (s *session) leasesCommand() *cobra.Command {
	l := &ledger{session: s}
	cmd := &cobra.Command{
		Use:   "leases [RUN]",
		Short: "List GPU leases (leases.rq.davidlangworthy.io): who held which GPUs, and who paid",
		Long: `List GPU leases: who held which GPUs from when to when, and which envelope of which Budget paid.

A GPU lease is a leases.rq.davidlangworthy.io (short name gl), not the Lease of coordination.k8s.io. There is one for each
pod of a Run. It stays when it is closed and when its Run is gone, so the name of a deleted Run is a good argument.

OWNER is the owner of the Budget that pays; RUN-OWNER, in the wide format, is the owner of the Run. GPU-HOURS are what is
charged: the hours held times the GPUs times the rate, which is 1 except for spares and opportunistic work; an open GPU
lease counts until now.

With -o csv there is a line for each GPU lease under a header, quoted as RFC 4180 has it: namespace, run, run_owner,
payer_owner, budget, envelope, relation, role, node, gpus, start, end (empty while open), hours, rate, gpu_hours,
gpu_seconds, reason, closure_reason, lease. Hours have five decimals, cut off; gpu_seconds are what gpu_hours are made of,
and exact: sums of these are what the Budgets are charged. With --since a GPU lease that began earlier is still listed as a
whole. The scheduler deletes GPU leases that have been closed for longer than its ledgerRetention, 30 days by default.`,
		Example: `  # Who pays for a Run
  kubectl runs leases resnet-small

  # What the owners below org:ai:rai pay for now, in all namespaces
  kubectl runs leases -A --open --owner 'org:ai:rai*'

  # What was held in the last 30 days, for a spreadsheet
  kubectl runs leases -A --since 30d -o csv > leases.csv`,
		Args:              runNames(0, 1),
		RunE:              s.runE(l.run),
		ValidArgsFunction: s.completeRuns,
	}
	l.output = newOutput(cmd, "", "wide, csv, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE")
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "List the GPU leases of all namespaces.")
	cmd.Flags().BoolVar(&l.open, "open", false, "Only GPU leases that are open.")
	cmd.Flags().BoolVar(&l.closed, "closed", false, "Only GPU leases that are closed.")
	cmd.Flags().StringVar(&l.owner, "owner", "", "Only GPU leases that this owner pays for; a trailing * makes it a prefix.")
	cmd.Flags().StringVar(&l.since, "since", "", "Only GPU leases that were open at any time since then: 12h, 30d, 2026-01-31 or 2026-01-31T00:00:00Z.")
	cmd.MarkFlagsMutuallyExclusive("open", "closed")
	must(cmd.RegisterFlagCompletionFunc("owner", s.completeOwners))
	return cmd
}

func (l *ledger) run(ctx context.Context, args []string) error {
	since, err := parseSince(l.since, l.now())
	if err != nil {
		return err
	}
	if !l.output.is("csv") {
		if err := l.output.check(); err != nil {
			return err
		}
	}
	c, namespace, _, err := l.connect()
	if err != nil {
		return err
	}
	if l.all {
		namespace = ""
	}
	leases, err := readLeases(ctx, c, namespace, args, l.state())
	if err != nil {
		return err
	}
	leases = slices.DeleteFunc(leases, func(lease rqv1.Lease) bool {
		return !ownerMatches(l.owner, lease.Spec.Payer.Owner) || !openSince(&lease, since)
	})
	return l.print(leases, args, namespace)
}

func (l *ledger) print(leases []rqv1.Lease, args []string, namespace string) error {
	if l.output.is("csv") {
		return writeCSV(l.Out, leases, l.now())
	}
	if !l.output.forPeople() {
		return l.output.printList(pointers[rqv1.Lease](leases), l.Out)
	}
	if len(leases) == 0 {
		what := "GPU leases"
		if len(args) > 0 {
			what += " of Run " + args[0]
		}
		fmt.Fprintln(l.ErrOut, nothingFound(what, namespace))
		return nil
	}
	table, err := leaseTable(leases, l.now())
	if err != nil {
		return err
	}
	return printTable(table, l.Out, l.output.wide(), l.all)
}

// state selects open or closed GPU leases on the server.
func (l *ledger) state() client.ListOption {
	switch {
	case l.open:
		return leasesOpen
	case l.closed:
		return leasesClosed
	}
	return &client.ListOptions{}
}

// readLeases returns the GPU leases of a namespace (all of them when it is empty), of one Run when one is named, ordered
// by Run, start and place.
func readLeases(ctx context.Context, c client.Client, namespace string, run []string, state client.ListOption) ([]rqv1.Lease, error) {
	options := []client.ListOption{client.InNamespace(namespace), state}
	if len(run) > 0 {
		options = append(options, client.MatchingLabels{rqv1.LabelRun: run[0]})
	}
	var list rqv1.LeaseList
	if err := c.List(ctx, &list, options...); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b rqv1.Lease) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Spec.RunRef.Name, b.Spec.RunRef.Name),
			a.Spec.Start.Truncate(1e9).Compare(b.Spec.Start.Truncate(1e9)),
			cmp.Compare(a.Spec.GroupIndex, b.Spec.GroupIndex),
			strings.Compare(nodesOf(&a), nodesOf(&b)),
			a.Spec.Start.Compare(b.Spec.Start.Time), // what a GPU lease makes room for comes after it
			strings.Compare(a.Name, b.Name),
		)
	})
	return list.Items, nil
}

// ownerMatches compares an owner with a pattern: an exact owner, a prefix that ends in "*" (as in rule R4), or nothing,
// which matches every owner.
func ownerMatches(pattern string, owner rqv1.Owner) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(string(owner), prefix)
	}
	return pattern == "" || pattern == string(owner)
}
