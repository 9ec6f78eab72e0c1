package book_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// What other rules have accepted is not known any more after a death. They are asked again about the places of a Run
// for which others have been cut: two pods that want a node each do not wait for one.
func TestAnActivationOfPodsThatKeepApartSurvivesADeath(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 16)
		s.submit("run0", "org:a", 2, 1, 8)
		s.work()
		s.during(time.Minute)
		s.submitWithSpares("run1", "org:b", 2, 1, 4, 0, apart)
		s.work()
		s.due()
		s.dies(rapid.IntRange(0, 12).Draw(s.t, "writes"), sim.All)
		s.step(s.work)
		s.Faults.Drop(sim.Crash)
		for range 40 {
			s.work()
			s.during(10 * noticePeriod)
		}
		s.running("run1", "although run0 was cut for it")
		for _, r := range s.Reservations {
			if len(r.Status.Cuts) > 0 && r.Status.State != rqv1.ReservationReleased {
				s.t.Fatalf("the Reservation is %s: %s", r.Status.State, r.Status.Reason)
			}
		}
	})
}
