package book_test

import (
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// As TestAPlaceIsNotKeptForEverForACordon, but the answer to the write that raises the PodDisruptionBudget is lost.
func TestAPlaceIsGivenBackAlthoughAnAnswerIsLost(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.aboutToLapse()
		s.Faults.Add(sim.Fault{Of: sim.Services, Do: sim.Late})
		s.until(time.Second)
		s.until(5 * time.Second)
		if s.least("run0") != 1 {
			s.t.Fatalf("the rank may still be evicted")
		}
		lapsed, late := s.Now, time.Duration(0)
		for s.runsOn("run1") == "" && s.Now.Sub(lapsed) < 20*gangDeadline {
			s.until(5 * time.Second)
			late = s.Now.Sub(lapsed)
		}
		if late > 10*time.Second {
			s.t.Fatalf("run1 has the place %s after nobody could evict the rank any more", late)
		}
	})
}
