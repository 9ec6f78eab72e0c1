package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Selectors of GPU leases by state, which the server evaluates.
var (
	leasesOpen   = client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("status.closed", "true")}
	leasesClosed = client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("status.closed", "true")}
)

func leaseTable(leases []rqv1.Lease, now time.Time) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: columns(
		"Run", "Role", "Group", "+Cohort", "Nodes", "GPUs", "Budget", "Envelope", "Owner", "+Relation", "+Run-Owner", "Start", "End",
		"+Duration", "+Rate", "+GPU-Hours", "Reason", "Closure", "+Run-UID", "+Lease")}
	for i := range leases {
		lease := &leases[i]
		spec := &lease.Spec
		charged, err := chargeOf(lease, now)
		if err != nil {
			return nil, err
		}
		table.Rows = append(table.Rows, row(lease,
			spec.RunRef.Name,
			string(spec.Slice.Role),
			fmt.Sprint(spec.GroupIndex),
			fmt.Sprint(spec.Cohort),
			nodesOf(lease),
			fmt.Sprint(lease.GPUs()),
			spec.Payer.Budget,
			spec.PaidByEnvelope,
			string(spec.Payer.Owner),
			string(lease.Relation()),
			string(spec.Owner),
			spec.Start.UTC().Format(time.RFC3339),
			endOf(lease),
			duration.HumanDuration(time.Duration(charged.seconds)*time.Second),
			charged.rate.String(),
			short(number(charged.spend)),
			string(spec.Reason),
			string(lease.Status.ClosureReason),
			string(spec.RunRef.UID),
			lease.Name,
		))
	}
	return table, nil
}

// nodesOf lists the nodes of a GPU lease.
func nodesOf(lease *rqv1.Lease) string {
	names := make([]string, len(lease.Spec.Slice.Nodes))
	for i, node := range lease.Spec.Slice.Nodes {
		names[i] = node.Name
	}
	return strings.Join(names, ",")
}

func endOf(lease *rqv1.Lease) string {
	if lease.Status.Ended == nil {
		return ""
	}
	return lease.Status.Ended.UTC().Format(time.RFC3339)
}
