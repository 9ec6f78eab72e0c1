package book_test

import (
	"testing"
	"time"
)

// The answer to a write of a Reservation comes after the watch has told that somebody deleted it. Nobody would tell
// again that it is gone.
func TestAReservationThatIsGoneStaysGone(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 1)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, checkpointed)
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:b", 1, 1, 8)
		s.work()
		s.due()
		s.Book.Due(s.Now)
		s.Act()
		s.cycle(s.pod("run1-0"))
		if s.Book.Prospect(s.Runs["run1"].UID).Activation == nil {
			s.t.Fatalf("nothing was decided:\n%s", s.story())
		}
		answer := s.Reservations["run1-r0"].DeepCopy()
		s.disturb()
		s.remove("run1-r0")
		for s.Delivers() {
			s.Deliver()
		}
		s.Book.SetReservation(answer)
		for range 60 {
			s.during(time.Second)
			s.work()
		}
		if r := s.Book.Prospect(s.Runs["run1"].UID).Reservation; r != nil && r.UID == answer.UID {
			s.t.Fatal("run1 has a Reservation that is gone")
		}
	})
}
