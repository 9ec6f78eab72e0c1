package book_test

import (
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// TestAQuestionThatNobodyAnswersEnds: the Run about which other rules are asked is not looked at meanwhile, so that its
// Leases would stay open, and its places kept, for ever.
func TestAQuestionThatNobodyAnswersEnds(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, apart)
		w.reconcile("run0")
		w.Book.Place(w.pod("run0-0"), w.Now)
		run := w.Runs["run0"]
		if w.Book.Check(run.UID, w.Now) == nil {
			w.t.Fatal("nothing is asked")
		}
		for range 15 {
			w.Pass(time.Second)
			w.Book.Advance(w.Now)
		}
		if _, known := w.Book.Look(book.Objects{Run: run}); w.Book.Check(run.UID, w.Now) != nil || !known {
			w.t.Fatal("it is asked still, and the Run is not looked at")
		}
		w.settle()
		w.running("run0", "although its pods fit")
	})
}

// TestADecisionThatNobodyAnswersIsAskedAboutSoon: that nobody has said what the rules are is no fact about the nodes.
func TestADecisionThatNobodyAnswersIsAskedAboutSoon(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.turnComes()
		s.checks("wants")
		for range 11 {
			s.during(time.Second)
			s.Book.Advance(s.Now)
		}
		s.running("holder", "although nothing is known about what cutting it would do")
		for range 10 {
			s.during(time.Second)
			s.work()
			s.refused(s.pod("wants-0"))
		}
		s.running("wants", "although nobody refuses it")
	})
}

// TestALayoutThatIsNotFoundInTimeIsLookedForSoon: there is no time to find out where pods would be spread for which
// others are to make room, nor for those that could start. What nodes said of these meanwhile is no fact about them.
func TestALayoutThatIsNotFoundInTimeIsLookedForSoon(t *testing.T) {
	for name, held := range map[string]bool{"others make room": true, "there is room": false} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.asks(true)
				s.setBudget("a", "org:a", 64)
				s.setBudget("b", "org:b", 64)
				for _, node := range []string{"d0-n00", "d0-n01", "d1-n00", "d1-n01"} {
					s.addNode(node, node[:2])
					if held {
						s.submitWithSpares("holder-"+node, "org:a", 1, 1, 8, 0, checkpointed, pinnedTo(node))
					}
				}
				s.work()
				s.during(time.Minute)
				s.Unlaid = true
				s.submitWithSpares("wants", "org:b", 1, 4, 4, 0, spreadOver("fabric.domain", 1))
				s.work()
				if held {
					s.due()
					s.work()
				}
				if n := s.Book.Bounded(s.Runs["wants"].UID); n > 0 {
					s.t.Fatalf("%d nodes take fewer of its pods", n)
				}
				s.Unlaid = false
				for range 12 {
					s.during(time.Second)
					s.work()
				}
				s.running("wants", "although there is time by now")
			})
		})
	}
}
