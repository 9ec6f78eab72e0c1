package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// A spare that is on its way to its node when its Run is cut opens no Lease any more: that Lease would be younger than
// the decision, and whoever completes it after a restart would not know that it ends too.
func TestACutPodOpensNoLease(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 16)
		s.submitWithSpares("run0", "org:a", 1, 2, 4, 1)
		s.work()
		s.during(time.Minute)
		s.submit("run1", "org:b", 1, 2, 8)
		s.work()
		next, _ := s.Book.NextDue()
		s.during(next.Add(-time.Minute).Sub(s.Now))
		s.DeletePod(s.pod("run0-s0"))
		s.reconcile("run0")
		s.during(next.Sub(s.Now))
		spare := s.place("run0-s0")
		if s.Binding[spare] == "" {
			s.t.Fatalf("the spare is not on its way:\n%s", s.story())
		}
		s.Book.Due(s.Now)
		s.Act()
		s.cycle(s.pod("run1-0"))
		s.reconcile("run1") // has its other pod made, before anything is told
		if a := s.Book.Prospect(s.Runs["run1"].UID).Activation; a == nil {
			s.t.Fatalf("run0 is not cut:\n%s", s.story())
		}
		s.Bind(spare, sim.Written)
		for range 2 {
			s.reconcile("run1") // publishes and reveals
		}
		s.restart()
		for range 2 {
			s.work()
			s.during(noticePeriod)
		}
		s.work()
		s.running("run1", "although run0 was cut for it")
		if r := s.Reservations["run1-r0"]; r.Status.State != rqv1.ReservationReleased {
			s.t.Fatalf("the Reservation is %s: %s", r.Status.State, r.Status.Reason)
		}
	})
}
