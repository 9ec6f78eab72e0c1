package book_test

import (
	"testing"
	"time"
)

// TestWhoHasItAlreadyTakesNothing reserves, for a Run that waits, the node of one that started a moment before: in the
// second, as the API server stamps it, in which the Reservation is made.
func TestWhoHasItAlreadyTakesNothing(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.addNode("n0", "d0")
		s.Pass(s.Now.Truncate(time.Second).Add(1300 * time.Millisecond).Sub(s.Now))
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.Pass(time.Millisecond)
		s.submit("run1", "org:b", 1, 1, 8)
		s.work()
		r := s.Reservations["run1-r0"]
		if r == nil || s.Now.Sub(r.CreationTimestamp.Time) > time.Second {
			s.t.Fatalf("at %s it has Reservation %+v", s.Now, r)
		}
		if text := s.Book.Usurpers(s.Runs["run1"].UID); text != "" {
			s.t.Fatal(text)
		}
	})
}
