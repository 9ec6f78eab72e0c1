package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Ranks that are to leave for maintenance wait until nobody may evict another. Meanwhile the node of the spare is lost
// that one of them was to replace: it has nowhere to go, and stays (R35).
func TestAPlaceThatIsGoneIsNoPlace(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0", "n1", "n2")
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 1)
		s.work()
		s.during(2 * time.Minute)
		s.work()
		s.addNode("n3", "d0")
		spare := s.on("run0-s0")
		for _, rank := range []string{"run0-0", "run0-1"} {
			s.announce(s.on(rank), 10*time.Minute, time.Hour)
		}
		s.work()
		s.until(10*time.Minute - 2*noticePeriod - time.Second)
		s.Guard("run0").Status.DisruptionsAllowed = 1 // kube-controller-manager has not caught up
		s.until(time.Second)
		before := s.pod("run0-0")
		if s.Pods[before].DeletionTimestamp != nil {
			s.t.Fatalf("the rank leaves although another may be evicted")
		}
		s.Lose(spare)
		s.until(0)
		s.Guard("run0").Status.DisruptionsAllowed = 0
		s.until(time.Second)
		s.until(noticePeriod)
		s.until(time.Second)
		if run := s.Runs["run0"]; run.Status.Phase != rqv1.RunRunning || s.on("run0-0") == "" {
			s.t.Fatalf("run0 is %s: %s; %v", run.Status.Phase, run.Status.Message, s.ledger("run0"))
		}
	})
}
