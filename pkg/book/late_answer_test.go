package book_test

import (
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// The answer to a write of a Reservation comes after the watch has told that somebody deleted it. Nobody would tell
// again that it is gone.
func TestAReservationThatIsGoneStaysGone(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 1)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, checkpointed)
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:b", 1, 1, 8)
		s.work()
		s.due()
		s.Book.Due(s.Now)
		s.Act()
		s.cycle(s.pod("run1-0"))
		if s.Book.Prospect(s.Runs["run1"].UID).Activation == nil {
			s.t.Fatalf("nothing was decided:\n%s", s.story())
		}
		answer := s.Reservations["run1-r0"].DeepCopy()
		s.disturb()
		s.remove("run1-r0")
		for s.Delivers() {
			s.Deliver()
		}
		s.Book.SetReservation(answer)
		for range 60 {
			s.during(time.Second)
			s.work()
		}
		if r := s.Book.Prospect(s.Runs["run1"].UID).Reservation; r != nil && r.UID == answer.UID {
			s.t.Fatal("run1 has a Reservation that is gone")
		}
	})
}

// The API server turns a pod of a Run back while other rules are asked about the Run's places. Whatever they say, it
// rests and says why: they were asked about places that it has no more.
func TestAnAnswerAboutPlacesThatWereGivenBackIsIgnored(t *testing.T) {
	for name, answer := range map[string]func(s *storm, c *book.Check){
		"accepted": func(s *storm, c *book.Check) { s.Book.Conclude(c, nil, false, s.Now) },
		"turned down": func(s *storm, c *book.Check) {
			turned := []book.Turning{{Pod: c.Places[0].Pod.UID, Node: c.Places[0].Node, Why: "no"}}
			s.Book.Conclude(c, turned, false, s.Now)
		},
		"interrupted": func(s *storm, c *book.Check) { s.Book.Interrupt(c, nil, 1, s.Now) },
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.asks(true)
				s.turnComes()
				c, run := s.checks("wants"), s.Runs["wants"].UID
				if !s.Book.NotTaken(run, book.Objection{Why: "exceeded quota"}, s.Now) {
					s.t.Fatal("it is not tried again")
				}
				answer(s, c)
				if r := s.Book.Refusal(run); r == nil || r.Reason != plan.NotCreated {
					s.t.Fatalf("it is refused for %+v", r)
				}
				s.reconcile("wants")
				s.running("holder", "and is to be cut for nobody")
				s.later(2 * time.Minute)
				s.running("wants", "although its pods are taken by now")
			})
		})
	}
}
