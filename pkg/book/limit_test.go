package book_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// contest has Runs of org:a hold two nodes of one domain and two of others, and Runs of org:b be given those two by
// cuts, 20 minutes after each other, with so many cuts an hour.
func (s *storm) contest(limit int32) {
	s.Book.LimitCuts(limit)
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	for i, domain := range []string{"d0", "d0", "d1", "d2"} {
		s.addNode(fmt.Sprintf("n%d", i), domain)
	}
	for _, name := range []string{"run0", "run1", "run2", "run3"} {
		s.submit(name, "org:a", 1, 1, 8)
		s.work()
	}
	s.during(time.Minute)
}

// admitted submits a Run of a pod and has others be cut for it.
func (s *storm) admitted(name string) {
	s.submit(name, "org:b", 1, 1, 8)
	s.work()
	s.due()
	s.rest()
	s.running(name, "although so many cuts an hour are allowed")
}

// first asserts that one Run starts before another, within two hours.
func (s *storm) first(run, other string) {
	for range 120 {
		step := time.Minute
		if next, ok := s.Book.NextDue(); ok {
			step = min(step, max(0, next.Sub(s.Now)))
		}
		s.during(step)
		s.work()
		if s.Runs[run].Status.Phase == rqv1.RunRunning {
			return
		}
		s.waits(other, "before a Run whose date came first")
	}
	s.running(run, "although its turn has come")
}

// A Run that needs more cuts than cutsPerHour ever allows starts once nobody has been cut for an hour.
func TestARunThatNeedsMoreCutsThanAllowedStartsInTheEnd(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.contest(1)
		s.admitted("small")
		s.submit("large", "org:b", 1, 2, 8)
		s.work()
		s.due()
		s.rest()
		if r := s.Reservations["large-r0"]; !strings.Contains(r.Status.Reason, "cutsPerHour") {
			s.t.Fatalf("the Reservation is %s: %s", r.Status.State, r.Status.Reason)
		}
		s.submit("little", "org:b", 1, 1, 8)
		s.rest()
		s.first("large", "little")
	})
}

// Runs that need few cuts and whose dates come later do not use up every hour before one that needs many.
func TestARunThatNeedsManyCutsIsNotOvertaken(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.contest(2)
		s.admitted("small")
		s.during(20 * time.Minute)
		s.admitted("small2")
		s.submit("large", "org:b", 1, 2, 8)
		s.work()
		s.due()
		s.rest()
		s.submit("little", "org:b", 1, 1, 8)
		s.rest()
		s.first("large", "little")
	})
}

// Who waited only for the first in the line does not wait for its hour once it is gone.
func TestTheLineMovesWhenItsFirstGoes(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.contest(2)
		s.admitted("small")
		s.submit("large", "org:b", 1, 2, 8)
		s.work()
		s.due()
		s.rest()
		s.submit("little", "org:b", 1, 1, 8)
		s.rest()
		for range 17 {
			s.during(time.Minute)
			s.work()
		}
		s.waits("little", "it waits for large")
		s.DeleteRun("large")
		s.rest()
		for range 4 {
			s.during(time.Minute)
			s.work()
		}
		s.running("little", "minutes after large has gone")
	})
}
