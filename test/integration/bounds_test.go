package integration

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// TestListsInStatusesAreBounded writes lists of one entry too many, which the API server refuses, and of one less.
func TestListsInStatusesAreBounded(t *testing.T) {
	makeNamespace(t, "bounds")
	run := runAs("bounds", "crowded", "org:bounds")
	r := promise(run, "crowded-r0")
	report(t, run, waiting)
	report(t, r, func(*rqv1.Reservation) {})
	risk := rqv1.RunRisk{Reservation: "bounds/crowded-r0", At: r.Spec.EarliestStart, Probability: "1"}
	writer := actAs(t, scheduler)
	for _, n := range []int{rqv1.MostRisks, rqv1.MostRisks + 1} {
		next := run.DeepCopy()
		for range n {
			next.Status.AtRisk = append(next.Status.AtRisk, risk)
		}
		if err := writer.Status().Update(t.Context(), next); (err != nil) != (n > rqv1.MostRisks) {
			t.Errorf("%d risks: %v", n, err)
		}
	}
	for _, fixed := range []bool{false, true} {
		for _, n := range []int{rqv1.MostForecastConflicts, rqv1.MostForecastConflicts + 1} {
			next := r.DeepCopy()
			for range n {
				next.Status.ConflictSet = append(next.Status.ConflictSet, ticketOf(run))
			}
			next.Status.Conflicts = resolver.TotalOf(next.Status.ConflictSet)
			if fixed {
				next.Status.ActivatedAt = &metav1.MicroTime{Time: time.Now()}
			}
			err := writer.Status().Update(t.Context(), next)
			if refused := n > rqv1.MostForecastConflicts && !fixed; (err != nil) != refused ||
				refused && !strings.Contains(err.Error(), "at most 256 entries") {
				t.Errorf("%d conflicts, fixed %t: %v", n, fixed, err)
			}
			r.ResourceVersion = next.ResourceVersion
		}
	}
}
