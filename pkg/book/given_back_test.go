package book_test

import (
	"testing"
	"time"
)

// bringsWithItsEnd asserts that run1 is promised to start once another Run ends.
func (s *storm) bringsWithItsEnd(other string) {
	s.t.Helper()
	s.running(other, "although it is not over")
	end, _ := s.Runs[other].EndsAt()
	p := s.Book.Prospect(s.Runs["run1"].UID).Promise
	if p == nil || p.Cuts || p.At.Before(end) || p.At.Sub(end) > noticePeriod {
		s.t.Fatalf("run1 is promised %+v, and %s ends at %s\n%s", p, other, end, s.story())
	}
}

// A Run that ends gives back the place to which a rank of it was to move, as is foreseen.
func TestWhatIsKeptForAMoveIsGivenBackWithItsRun(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Book.DrawsBy("None")
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, lasting(10*time.Minute))
		s.work()
		on := s.on("run0-0")
		s.cordons(on, true)
		s.askedToMove("run0", "0@"+on)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.bringsWithItsEnd("run0")
	})
}

// So does it the money of a rank that has no place, unless that has been given up before.
func TestTheMoneyOfALostRankIsGivenBackWithItsRun(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Book.DrawsBy("None")
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run00", "org:a", 1, 2, 8, 0, theirs, lasting(10*time.Minute))
		s.work()
		s.fleet("d1", 1)
		s.submitWithSpares("run1", "org:a", 2, 1, 8, 0)
		s.work()
		s.during(10*time.Minute - gangDeadline/2)
		s.controllers.less[slot{s.Runs["run00"].UID, 1}] = true
		s.Lose(s.boundSlots("run00")[1])
		s.disturb()
		s.work()
		s.bringsWithItsEnd("run00")
	})
}

// A lost rank may have the place that is kept for a rank of another Run, together with what that Run holds: nobody else
// ends for as much.
func TestALostRankHasWhatIsKeptForOneOfALowerPriority(t *testing.T) {
	tell(t, func(w *world) {
		w.class("high", 2000000)
		w.class("low", 1000000)
		w.guarded(3, 3, 0, of("high"), checkpointed)
		w.setBudget("a", "org:a", 64)
		w.addNode("other", "d0")
		w.submitWithSpares("run2", "org:a", 1, 1, 8, 0, of("low"), checkpointed)
		w.settle()
		w.addNode("large-0", "d0")
		w.addNode("large-1", "d0")
		w.submitWithSpares("run00", "org:a", 1, 2, 8, 0, of("low"), theirs)
		w.rounds(3)
		w.running("run00", "although it fits")
		w.Pass(10 * time.Second)
		w.leaves("run00", 1)
		w.rounds(2)
		w.Lose(w.on("run0-1"), w.on("run0-2"))
		w.rounds(12)
		w.expectLedger("run0", map[string]int{"NodeFailure": 2, "open Start Active": 1, "open Swap Active": 2})
		w.expectLedger("run2", map[string]int{"open Start Active": 1})
	})
}
