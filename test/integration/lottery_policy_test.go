package integration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestOnlyRunsThatBorrowAreDrawn has operators limit the lottery: a Run that its own owner pays for is neither drawn
// nor at risk, and one that its family pays for is. What is announced comes true, and the Run is not told between that
// it is safe.
func TestOnlyRunsThatBorrowAreDrawn(t *testing.T) {
	t.Parallel()
	args := led("4s")
	args["lottery"] = "Borrowed"
	s := newSite(t, ownCluster(t, withoutElection, args), 1, 2, 0)
	s.startScheduler()
	for path, gpus := range map[string]int32{"own": 8, "family": 8, "next": 8} {
		s.fund(path, s.envelope("all", gpus))
	}
	s.submit("own", 8, s.by("own"))
	s.await("own", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("lent", 8, s.by("family:team"))
	s.await("lent", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("next", 8, s.by("next"))
	r := s.awaitReservation("next", inState(rqv1.ReservationPending))
	same(t, "conflict set", []string{"lent Lottery 8 1"}, conflicts(r))
	s.awaitRisk("lent", r.Name, "1")
	s.await("next", rqv1.RunRunning, "bound 8 GPUs")
	s.await("lent", rqv1.RunFailed, "cut by lottery")
	s.awaitEvent("Run", "lent", "CameTrue")
	if safe := s.eventsOf("Run", "lent", "no Reservation needs"); len(safe) > 0 {
		t.Errorf("it was told that it is safe: %v", safe)
	}
	if err := s.atRisk("own", metav1.ConditionStatus("")); err != nil {
		t.Error(err)
	}
	s.await("own", rqv1.RunRunning, "bound 8 GPUs")
	s.settled()
}
