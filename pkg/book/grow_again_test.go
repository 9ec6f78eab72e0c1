package book_test

import (
	"testing"
	"time"
)

// A Run that was shrunk grows again only once the spares of the group that it gave up are gone: they are nobody's any
// more.
func TestARunGrowsOnceItsOldSparesAreGone(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 5)
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 2, 1, 8, 1, elastic(1, 1), upTo(2))
		s.work()
		s.during(time.Second)
		s.work()
		s.running("run0", "at its full width")
		s.desire("run0", 8)
		for range 3 {
			s.work()
			s.hang(s.pod("run0-s1"))
			s.during(time.Minute)
		}
		s.desire("run0", 16)
		s.disturb()
		s.work()
		if to := s.Book.Prospect(s.Runs["run0"].UID).GrowTo; to != 0 {
			s.t.Fatalf("run0 is to grow to %d GPUs beside a spare that is leaving", to)
		}
		s.Ends.Delete(s.pod("run0-s1"))
		s.DeletePod(s.pod("run0-s1"))
		for range 3 {
			s.during(time.Minute)
			s.work()
		}
		if width := s.Runs["run0"].Status.Width; width.Granted != 16 {
			s.t.Fatalf("run0 does not grow once the spare is gone: %+v", width)
		}
	})
}

// A node that once turned a cohort down is tried again when the Run grows the next time.
func TestARunGrowsWhereItWasOnceTurnedDown(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, ungrouped, elastic(2, 1), upTo(3))
		w.desire("run0", 16)
		w.settle()
		w.running("run0", "although it fits")
		for _, node := range w.idleNodes() {
			w.Rejects[node] = "Insufficient cpu"
		}
		w.desire("run0", 24)
		for range 60 {
			w.Pass(10 * time.Second)
			w.round()
		}
		clear(w.Rejects)
		for range 60 {
			w.Pass(10 * time.Second)
			w.round()
		}
		if width := w.Runs["run0"].Status.Width; width.Granted != 24 {
			w.t.Fatalf("it does not grow: %s", w.growths())
		}
	})
}
