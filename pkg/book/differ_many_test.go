package book_test

import (
	"fmt"
	"testing"
	"time"
)

// TestPodsOfManyKindsHaveADate: however many kinds of pods a group has, it has a date where each of them has a node,
// although no node is for all of them.
func TestPodsOfManyKindsHaveADate(t *testing.T) {
	tellStorm(t, func(s *storm) {
		const pods = 12
		s.fleet("d0", pods)
		s.setBudget("a", "org:a", 200)
		s.submitWithSpares("run0", "org:a", 1, pods, 8, 0, ungrouped, lasting(time.Hour))
		s.work()
		s.controllers.pinned = map[int]string{}
		for i := range pods {
			s.controllers.pinned[i] = fmt.Sprintf("d0-n%02d", i)
		}
		s.submitWithSpares("run00", "org:a", 1, pods, 8, 0, ungrouped, theirs)
		s.work()
		if p := s.Book.Prospect(s.Runs["run00"].UID).Promise; p == nil {
			t.Errorf("it has no date: %s", s.story())
		}
	})
}

// TestPodsOfAGroupThatDifferGoOnNarrower: a group that lost a rank goes on narrower where that one has a node once
// others have given theirs up, though not all of its pods may use that.
func TestPodsOfAGroupThatDifferGoOnNarrower(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 48)
		w.controllers.pinned = map[int]string{0: "d0-n00,d0-n03", 1: "d0-n01", 2: "d0-n02", 3: "d0-n03"}
		w.submitWithSpares("run00", "org:a", 1, 4, 8, 0, ungrouped, theirs, elastic(1, 1))
		w.rounds(4)
		if bound := len(w.boundSlots("run00")); bound != 4 {
			t.Fatalf("%d of its pods are bound: %s", bound, w.Runs["run00"].Status.Message)
		}
		before := w.Slots(w.Runs["run00"].UID)
		w.Lose("d0-n00")
		w.rounds(20)
		w.granted("run00", 24)
		after := w.Slots(w.Runs["run00"].UID)
		for _, slot := range []int{1, 2} {
			if before[slot][0].UID != after[slot][0].UID {
				t.Errorf("rank %d has begun anew", slot)
			}
		}
		w.settle()
		w.checkSettled()
	})
}
