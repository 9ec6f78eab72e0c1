package book_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// datedRun has run2 of org:a be promised 16 GPUs that org:a pays for, by a cut, while 8 are free.
func (s *storm) datedRun() {
	s.fleet("d0", 3)
	s.setBudget("a", "org:a", 16)
	s.setBudget("b", "org:b", 16)
	s.submit("run0", "org:b", 1, 1, 8)
	s.submit("run1", "org:b", 1, 1, 8)
	s.work()
	s.during(time.Minute)
	s.submit("run2", "org:a", 2, 1, 8)
	s.work()
	if p := s.Book.Prospect(s.Runs["run2"].UID).Promise; p == nil || !p.Cuts {
		s.t.Fatalf("run2 is promised %+v\n%s", p, s.story())
	}
	s.during(time.Second)
}

// isRefused asserts that a Run waits and is told why.
func (s *storm) isRefused(run, why string) {
	if is := s.Runs[run].Status; is.Phase != rqv1.RunPending || !strings.Contains(is.Message, why) {
		s.t.Fatalf("%s is %s: %s", run, is.Phase, is.Message)
	}
}

const reserved = "a/e: 0 of 16 GPUs in use, 16 reserved for Run ns/run2 to start at 2026-01-01T00:03:00Z, usable " +
	"until then by Runs whose maxDuration ends earlier"

// What a Run with a date is to be paid from is kept from younger Runs of the same payers, unless these have ended by
// then (R18). Once it has no date any more others have it.
func TestADateKeepsItsMoney(t *testing.T) {
	t.Run("from a younger Run", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.submit("run3", "org:a", 1, 1, 8)
			s.work()
			s.isRefused("run3", reserved)
			s.DeleteRun("run2")
			s.work()
			s.running("run3", "although nobody has a date any more")
		})
	})
	t.Run("from a younger Run when another process begins", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.submit("run3", "org:a", 1, 1, 8)
			s.restart()
			for _, uid := range s.SortedPods() {
				s.cycle(uid)
			}
			s.work()
			s.isRefused("run3", "16 reserved for Run ns/run2")
		})
	})
	t.Run("until it is suspended", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.submit("run3", "org:a", 1, 1, 8)
			s.work()
			s.isRefused("run3", reserved)
			s.amend("run2", func(spec *rqv1.RunSpec) { spec.Suspend = true })
			s.work()
			s.running("run3", "although run2 is suspended")
		})
	})
	t.Run("not from one that ends before", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.submitWithSpares("run3", "org:a", 1, 1, 8, 0, lasting(time.Minute))
			s.work()
			s.running("run3", "although it has ended by the date")
		})
	})
	t.Run("not from one that is edited so that it ends before", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.submit("run3", "org:a", 1, 1, 8)
			s.work()
			s.isRefused("run3", reserved)
			s.amend("run3", lasting(time.Minute))
			s.work()
			s.running("run3", "although it has ended by the date")
		})
	})
	t.Run("not from another owner's", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.setBudget("c", "org:c", 16)
			s.submit("run3", "org:c", 1, 1, 8)
			s.work()
			s.running("run3", "although another pays for it")
		})
	})
	t.Run("not from itself", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.DeleteRun("run0")
			s.work()
			s.running("run2", "although there is room before its date")
		})
	})
	t.Run("of several of which each goes for the next, two at a time", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.fleet("d0", 2)
			s.setBudget("a", "org:a", 64)
			for i := range 4 {
				s.submit(fmt.Sprintf("run%d", i), "org:a", 1, 2, 8)
				s.work()
				s.during(10 * time.Second)
			}
			for _, run := range []string{"run1", "run2", "run3"} {
				if s.Book.Prospect(s.Runs[run].UID).Promise == nil {
					s.t.Fatalf("%s has no date\n%s", run, s.story())
				}
			}
			s.submit("young", "org:a", 1, 1, 8)
			s.work()
			s.isRefused("young", "8 H100-80GB GPUs are needed")
		})
	})
	t.Run("through its activation", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.submit("run3", "org:a", 1, 1, 8)
			s.passes(reservationLead + time.Minute)
			s.running("run2", "although its money was kept")
		})
	})
	t.Run("while cuts are paused", func(t *testing.T) {
		tellStorm(t, func(s *storm) {
			s.datedRun()
			s.Book.SetBrake(paused)
			s.submit("run3", "org:a", 1, 1, 8)
			for range 6 {
				s.work()
				s.during(time.Minute)
			}
			s.isRefused("run3", "16 reserved for Run ns/run2")
		})
	})
}

// A Run does not grow by money that another is to be paid from, however young that one is (R23).
func TestADateKeepsItsMoneyFromGrowth(t *testing.T) {
	for name, test := range map[string]struct {
		budget int
		grows  int32
	}{"no money for both": {32, 8}, "money for both": {40, 16}} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleet("d0", 3)
				s.fleet("d1", 2)
				s.setBudget("a", "org:a", test.budget)
				s.setBudget("b", "org:b", 8)
				s.submit("run1", "org:b", 1, 1, 8)
				s.work()
				s.submitWithSpares("run0", "org:a", 2, 1, 8, 0, elastic(1, 1))
				s.work()
				s.desire("run0", 8)
				s.passes(time.Minute)
				s.submit("run2", "org:a", 1, 3, 8)
				s.work()
				if p := s.Book.Prospect(s.Runs["run2"].UID).Promise; p == nil || !p.Cuts {
					s.t.Fatalf("run2 is promised %+v\n%s", p, s.story())
				}
				s.desire("run0", 16)
				s.passes(time.Minute)
				if w := s.Runs["run0"].Status.Width; w.Granted != test.grows {
					s.t.Fatalf("run0 has %d GPUs, want %d\n%s", w.Granted, test.grows, s.story())
				}
			})
		})
	}
}
