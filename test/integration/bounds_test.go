package integration

import (
	"fmt"
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

// TestManyWhoMayBeCut has 264 Runs of one GPU be in the way of one that waits: its Reservation lists 256 of them and
// says how many there are.
func TestManyWhoMayBeCut(t *testing.T) {
	t.Parallel()
	const nodes = 33
	s := newSite(t, liveCluster(t), 1, nodes, 1000)
	for i := range nodes * 8 {
		s.submit(fmt.Sprintf("small-%d", i), 1)
	}
	for i := range nodes * 8 {
		s.await(fmt.Sprintf("small-%d", i), rqv1.RunRunning, "bound 1 GPUs")
	}
	s.submit("waits", 8, inPods(1))
	r := s.awaitReservation("waits", func(r *rqv1.Reservation) error {
		if r.Status.Conflicts == nil {
			return fmt.Errorf("%d conflicts, and nothing is said of their total", len(r.Status.ConflictSet))
		}
		return nil
	})
	same(t, "how many conflicts are listed", rqv1.MostForecastConflicts, len(r.Status.ConflictSet))
	same(t, "of how many", rqv1.ConflictTotal{Total: nodes * 8, GPUs: nodes * 8}, *r.Status.Conflicts)
}
