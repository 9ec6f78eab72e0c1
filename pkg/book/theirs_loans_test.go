package book_test

import (
	"slices"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// lendsFromBelow has a group of two pods grow to so many, on a fleet of as many nodes, and then lose its first, of
// which its controller asks for no more: somebody else starts in its place.
func (s *storm) lendsFromBelow(pods int) {
	s.fleet("d0", pods)
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	s.submitWithSpares("run00", "org:a", 1, 2, 8, 0, ungrouped, theirs)
	for range 3 {
		s.work()
		s.during(time.Minute)
	}
	run := s.Runs["run00"]
	s.resizeTo("run00", pods)
	for range 2 * pods {
		s.work()
		s.during(time.Minute)
	}
	if on := s.boundSlots("run00"); len(on) != pods {
		s.t.Fatalf("it does not grow: its pods are on %v, its width is %+v", on, run.Status.Width)
	}
	s.controllers.wants[run.UID] = pods - 1
	s.leaves("run00", 0)
	s.resize(s.Runs["run00"])
	s.passes(time.Minute)
	s.submit("fills", "org:b", 1, 1, 8)
	s.passes(time.Minute)
	s.running("fills", "although the node of the rank that has gone is free")
}

// keepsItsOwn asserts that what the group started with is not taken from it as a loan.
func (s *storm) keepsItsOwn(ranks ...int) {
	s.t.Helper()
	on := s.boundSlots("run00")
	for _, rank := range ranks {
		if on[rank] == "" {
			s.t.Errorf("its own two pods are ranks %v, and it has %v: %+v", ranks, on, s.Runs["run00"].Status.Width)
		}
	}
	for name, r := range s.Reservations {
		for _, cut := range r.Status.Cuts {
			if cut.Run.Name == "run00" && cut.Action == rqv1.CutReturn && *cut.Width <= int32(8*slices.Max(ranks)) {
				s.t.Errorf("%s takes its own as a loan: %+v", name, r.Status.Cuts)
			}
		}
	}
}

// TestASecondLoanIsNotItsOwn: the ranks that a group has given up from below are no pods that it has, also once it has
// given a loan back.
func TestASecondLoanIsNotItsOwn(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.lendsFromBelow(4)
		s.submit("run1", "org:b", 1, 1, 8)
		s.passes(2 * noticePeriod)
		s.running("run1", "although a pod is on loan")
		s.submit("run2", "org:b", 1, 1, 8)
		s.passes(2 * noticePeriod)
		s.keepsItsOwn(1, 2)
	})
}

// TestALostRankIsNoneThatIsGivenUp: a rank that is lost, whose place is kept, is none of those that the group is to be
// without. It is on loan, since the group has its own two pods besides, and so its place is what is given back.
func TestALostRankIsNoneThatIsGivenUp(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.lendsFromBelow(4)
		s.leaves("run00", 3)
		s.work()
		s.submit("run2", "org:b", 1, 1, 8)
		s.passes(2 * noticePeriod)
		s.running("run2", "although what is kept for the lost rank is on loan")
		s.keepsItsOwn(1, 2)
	})
}
