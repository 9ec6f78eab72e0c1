package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestBudgetLostAndFound deletes a Budget by accident while it pays and has paid: the Run goes on, and once the Budget
// is back, so are its usage and every GPU-second.
func TestBudgetLostAndFound(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 0)
	s.fund("team", s.envelope("all", 16))
	s.submit("past", 8, s.by("team"), annotated("pod-complete.stage.kwok.x-k8s.io/delay", "2s"))
	s.await("past", rqv1.RunCompleted, "completed")
	s.submit("held", 8, s.by("team"))
	s.await("held", rqv1.RunRunning, "bound 8 GPUs")
	s.awaitEnvelopes("team", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 8})
	before := s.versions("held")

	s.delete(s.budgetFor("team"))
	s.awaitOverdraft("held", metav1.ConditionTrue)
	s.awaitFunding("held", 0, s.sponsor("team", 8, "overdraft"))
	s.submit("new", 8, s.by("team"))
	s.awaitRefusal("new", "NoBudget", "no Budget of owner")

	s.fund("team", s.envelope("all", 16))
	s.awaitOverdraft("held", metav1.ConditionFalse)
	s.awaitFunding("held", 8)
	s.await("new", rqv1.RunRunning, "bound 8 GPUs")
	if diff := cmp.Diff(before, s.versions("held")); diff != "" {
		t.Errorf("pods and Leases were touched: %s", diff)
	}
	s.settled()
	s.removeRun("held")
	s.removeRun("new")
	s.awaitGone("held", "new")
	s.awaitSpent("team")
}

// awaitSpent waits until nothing is charged to an owner's Budget any more, and its GPU-hours are what all Leases that
// the site ever had add up to, whether they are still there or not (I8, R9).
func (s *site) awaitSpent(path string) {
	s.t.Helper()
	eventually(s.t, "the GPU-hours of "+path, func() error {
		status, err := s.statusOf(path)
		if err != nil {
			return err
		}
		for i := range status.Envelopes {
			e := &status.Envelopes[i]
			spent, err := s.everSpent(s.budgetFor(path).Name, e.Name)
			if err != nil {
				return err
			}
			if got := e.GPUHours.Spent; got != spent.String() {
				return fmt.Errorf("envelope %s has spent %s by its status and %s by its Leases", e.Name, got, spent)
			}
		}
		return nil
	})
}
