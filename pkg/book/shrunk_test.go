package book_test

import (
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// shrunk has run0, which has two ranks with a grace period in seconds, be shrunk to one for run1.
func (s *storm) shrunk(grace int64) {
	s.fleet("d0", 2)
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, ungrouped, elastic(1, 1), patient(grace))
	s.work()
	s.during(time.Second)
	s.submit("run1", "org:b", 1, 1, 8)
	s.work()
	s.due()
	s.work()
	if len(s.Book.CutsOf(s.Runs["run0"].UID)) != 1 {
		s.t.Fatalf("run0 is not cut:\n%s", s.story())
	}
	s.disturb()
}

// placedWithin asserts that a rank gets a place before a while is over.
func (s *storm) placedWithin(pod string, while time.Duration) {
	for began := s.Now; s.Now.Sub(began) <= while; s.during(time.Second) {
		for _, name := range s.Live() {
			s.reconcile(name)
		}
		s.work()
		if s.Book.Assigned(s.pod(pod)) != "" {
			return
		}
	}
	s.t.Fatalf("%s has no place after %s:\n%s", pod, while, s.story())
}

// lose has a rank of a Run be lost, and made again.
func (s *storm) lose(pod string) {
	s.EndPod(s.pod(pod), "")
	s.DeletePod(s.pod(pod))
	s.work()
}

// A rank that stays is replaced while the rank that goes still ends: its room is kept for it, and it is not part of the
// cut.
func TestARankThatStaysOfAShrunkRunIsReplaced(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.shrunk(int64(longestGrace / time.Second))
		s.lose("run0-0")
		s.placedWithin("run0-0", time.Second)
	})
}

// The Run that another was shrunk for may have no pod, for a quota that is used up: its activation goes on for ever.
func TestAShrunkRunGoesOnThoughItsCutterCannotStart(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.shrunk(int64(longestGrace / time.Second))
		s.lose("run0-0")
		s.quota(0)
		s.DeletePod(s.pod("run1-0"))
		s.placedWithin("run0-0", 5*time.Minute)
	})
}

// The rank that was given up hangs on its node, and run1 runs on another: its activation goes on until the rank is
// gone.
func TestAShrunkRunGoesOnThoughItsVictimHangs(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.shrunk(45)
		s.during(noticePeriod)
		s.work()
		s.hang(s.pod("run0-1"))
		s.addNode("n2", "d0")
		for range 300 {
			s.work()
			s.during(time.Second)
		}
		s.running("run1", "although there is a node for it")
		s.lose("run0-0")
		s.placedWithin("run0-0", 5*time.Minute)
	})
}

// As TestARankOfARunThatIsEndedGetsNoPlace, but the process dies once the cut is published, when run1's pod happens to
// be gone: its successor does not complete the activation before that pod is there again.
func TestASuccessorPlacesNoRankOfARunThatIsEnded(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, checkpointed, patient(45))
		s.work()
		s.during(time.Second)
		s.cutAmidALoss()
		s.disturb()
		s.DeletePod(s.pod("run1-0"))
		s.restart()
		s.during(100 * time.Millisecond)
		s.Queue[s.pod("run0-1")] = true
		s.cycle(s.pod("run0-1"))
		if node := s.Book.Assigned(s.pod("run0-1")); node != "" {
			s.t.Fatalf("a rank of a Run that is ended got a place on %s after the restart:\n%s", node, s.story())
		}
		for _, uid := range s.Bindings() {
			s.Bind(uid, sim.Written)
		}
		for range 100 {
			s.work()
			s.during(time.Second)
		}
		s.checkCut()
	})
}
