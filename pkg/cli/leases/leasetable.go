package leases

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

func leaseTable(leases []rqv1.Lease, now time.Time) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: session.Columns(
		"Run", "Role~5", "Group?~6", "+Cohort", "Nodes", "GPUs", "Start~3", "End?~4", "+Duration", "+Rate", "+GPU-Hours",
		"Reason~7", "Closure?~2", "Payer~1", "Owner~8", "+Relation", "+Run-Owner", "+Run-UID", "+Lease")}
	for i := range leases {
		lease := &leases[i]
		spec := &lease.Spec
		charged, err := view.ChargeOf(lease, now)
		if err != nil {
			return nil, err
		}
		table.Rows = append(table.Rows, session.Row(lease,
			spec.RunRef.Name,
			string(spec.Slice.Role),
			fmt.Sprint(spec.GroupIndex),
			fmt.Sprint(spec.Cohort),
			session.NodesOf(lease),
			fmt.Sprint(lease.GPUs()),
			session.ClockToSecond(spec.Start.Time, now),
			endedAt(lease, now),
			duration.HumanDuration(time.Duration(charged.Seconds)*time.Second),
			charged.Rate.String(),
			view.Short(view.Number(charged.Spend)),
			string(spec.Reason),
			string(lease.Status.ClosureReason),
			payerOf(lease),
			string(spec.Payer.Owner),
			string(lease.Relation()),
			string(spec.Owner),
			string(spec.RunRef.UID),
			lease.Name,
		))
	}
	return table, nil
}

// payerOf names the envelope that pays for a GPU lease, and says so of a sponsor's.
func payerOf(lease *rqv1.Lease) string {
	payer := lease.Spec.Payer.Budget + "/" + lease.Spec.PaidByEnvelope
	if lease.Relation() == rqv1.RelationSponsor {
		payer += " (sponsor)"
	}
	return payer
}

// endedAt is when a GPU lease closed, by the clock of whoever reads it.
func endedAt(lease *rqv1.Lease, now time.Time) string {
	if lease.Status.Ended == nil {
		return ""
	}
	return session.ClockToSecond(lease.Status.Ended.Time, now)
}

// endOf is the same as data.
func endOf(lease *rqv1.Lease) string {
	if lease.Status.Ended == nil {
		return ""
	}
	return lease.Status.Ended.UTC().Format(time.RFC3339)
}
