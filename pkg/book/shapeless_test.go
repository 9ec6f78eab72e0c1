package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that no node has room for any more has no date, also where a process that has begun since finds it so: its
// Reservation is canceled, and nobody is at risk by it.
func TestARunThatNeverFitsHasNoReservation(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			s.fleet("d0", 2)
			s.setBudget("a", "org:a", 16)
			s.edit("a", func(e *rqv1.Envelope) { e.Start = &metav1.Time{Time: s.Now.Add(time.Hour)} })
			s.submit("run0", "org:a", 2, 1, 8)
			s.work()
			if s.reservationOf("run0") == nil {
				s.t.Fatalf("run0 has no date\n%s", s.story())
			}
			s.RemoveNode("d0-n01")
			if restarts {
				s.restart()
			}
			s.passes(time.Minute)
			if r := s.reservationOf("run0"); r != nil {
				s.t.Fatalf("the Reservation of run0 is %s\n%s", r.Status.State, s.story())
			}
		})
	}
}

// reservationOf returns the Reservation of a Run that has not ended; nil when there is none.
func (s *storm) reservationOf(run string) *rqv1.Reservation {
	for _, r := range s.Reservations {
		if r.Spec.RunRef.Name == run && !r.Ended() {
			return r
		}
	}
	return nil
}
