package leases

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// share is what one envelope pays for of one Run.
type share struct {
	first *rqv1.Lease // that began first
	gpus  int32       // that are held now
	spend budget.Spend
	ended time.Time // of the one that ended last
	why   []rqv1.ClosureReason
}

// key tells shares apart.
type key struct {
	run              types.UID
	budget, envelope string
}

// sharesOf adds GPU leases up, by Run and envelope, in the order in which they come.
func sharesOf(leases []rqv1.Lease, now time.Time) ([]*share, error) {
	var order []*share
	found := map[key]*share{}
	for i := range leases {
		lease := &leases[i]
		charged, err := view.ChargeOf(lease, now)
		if err != nil {
			return nil, err
		}
		k := key{lease.Spec.RunRef.UID, lease.Spec.Payer.Budget, lease.Spec.PaidByEnvelope}
		s := found[k]
		if s == nil {
			s = &share{first: lease}
			found[k] = s
			order = append(order, s)
		}
		s.spend += charged.Spend
		if lease.Spec.Start.Before(&s.first.Spec.Start) {
			s.first = lease
		}
		if !lease.Status.Closed {
			s.gpus += lease.GPUs()
			continue
		}
		if ended := lease.Status.Ended; ended != nil && ended.After(s.ended) {
			s.ended = ended.Time
		}
		if reason := lease.Status.ClosureReason; reason != "" && !slices.Contains(s.why, reason) {
			s.why = append(s.why, reason)
		}
	}
	for _, s := range order {
		slices.Sort(s.why)
	}
	return order, nil
}

// summaryTable is a line for each Run and envelope.
func summaryTable(leases []rqv1.Lease, now time.Time) (*metav1.Table, error) {
	shares, err := sharesOf(leases, now)
	if err != nil {
		return nil, err
	}
	columns := []string{"Run", "Payer", "Owner~4", "GPUs?", "GPU-Hours~2", "Began~3", "Ended~1", "Closures…"}
	if !slices.ContainsFunc(shares, func(s *share) bool { return len(s.why) > 0 }) {
		columns = columns[:len(columns)-2] // nothing has ended
	}
	table := &metav1.Table{ColumnDefinitions: session.Columns(columns...)}
	for _, s := range shares {
		spec, ended := &s.first.Spec, ""
		if s.gpus == 0 && !s.ended.IsZero() {
			ended = ago(s.ended, now)
		}
		cells := []string{spec.RunRef.Name, payerOf(s.first), string(spec.Payer.Owner),
			fmt.Sprint(s.gpus), view.Short(view.Number(s.spend)), ago(spec.Start.Time, now), ended, reasons(s.why)}
		table.Rows = append(table.Rows, session.Row(s.first, cells[:len(columns)]...))
	}
	return table, nil
}

// reasons names why GPU leases have closed.
func reasons(why []rqv1.ClosureReason) string {
	words := make([]string, len(why))
	for i, reason := range why {
		words[i] = string(reason)
	}
	return strings.Join(words, ", ")
}

// ago says how long ago an instant is.
func ago(t, now time.Time) string {
	return duration.HumanDuration(max(0, now.Sub(t))) + " ago"
}
