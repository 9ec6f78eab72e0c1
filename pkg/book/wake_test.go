package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that is woken for room which has come, and ends before it is tried, leaves the room to whoever waits next.
func TestARunThatEndsBeforeItIsTriedLeavesItsRoomToTheNext(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 1)
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 2, 4, 0, elastic(2, 2), upTo(4))
		w.round()
		w.round()
		w.Lose("d0-n00")
		w.round()
		w.submitWithSpares("run2", "org:a", 1, 1, 2, 0)
		w.round()
		w.addNode("n1", "d0")
		w.settle()
		w.checkSettled()
	})
}

// A Run that waits for GPU-hours is not written again because somebody else's spending goes on.
func TestSpendingThatGoesOnIsNoNewsToThoseWhoWait(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 10)
		s.setBudget("a", "org:a", 800)
		s.hours("a", 60)
		s.submit("run0", "org:a", 1, 2, 8) // 16 GPU-hours an hour
		s.work()
		s.submit("run1", "org:a", 1, 8, 8) // its next hour takes 64
		s.work()
		writes, stored := 0, s.Stored
		s.Stored = func(next *rqv1.Run) {
			if next.Name == "run1" {
				writes++
			}
			stored(next)
		}
		for range 60 {
			s.during(30 * time.Second)
			s.work()
		}
		if writes > 2 {
			s.t.Errorf("%d writes in 30 minutes of a Run that waits as before", writes)
		}
	})
}
