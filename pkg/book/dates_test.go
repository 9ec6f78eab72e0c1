package book_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

// goesOn lets a process do for a while what it does by itself, as it does it: dates come, one is worked out, and then
// pods are tried that do not fit.
func (s *storm) goesOn(d time.Duration) {
	for until := s.Now.Add(d); s.Now.Before(until); s.during(50 * time.Millisecond) {
		s.Book.Advance(s.Now)
		s.Book.WorkOutNext(s.Now, 0)
		s.Act()
		for _, uid := range s.SortedPods() {
			if s.Queue[uid] && s.Book.Gate(s.Pods[uid]) == "" {
				s.refused(uid)
			}
		}
	}
}

// refused is the cycle of a pod that does not fit: its date is worked out later. It reports whether it did not.
func (s *storm) refused(uid types.UID) bool {
	delete(s.Queue, uid)
	_, refusal, _ := s.Place(s.Book, uid)
	if refusal != nil {
		s.Book.Refused(uid, s.Now)
	}
	return refusal != nil
}

// leftEarly has run1 wait for run0, which is told to go before run1's date, and returns what run1 is promised and when
// its turn comes, before that.
func (s *storm) leftEarly() (p *forecast.Promise, turn time.Time) {
	s.during(time.Second)
	s.submit("run1", "org:a", 1, 1, 8)
	s.work()
	s.during(reservationLead / 2)
	s.DeleteRun("run0")
	s.disturb()
	s.work()
	p = s.Book.Prospect(s.Runs["run1"].UID).Promise
	turn, due := s.Book.NextDue()
	if p == nil || p.Cuts || !due || !turn.Before(p.At) {
		s.t.Fatalf("run1 is promised %+v, and its turn comes at %s", p, turn)
	}
	return p, turn
}

// A Run is promised the room of another that is to end, and which is still there then: the date moves.
func TestADateOnWhichNothingHappensMoves(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, lasting(time.Minute))
		s.work()
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		run := s.Runs["run1"].UID
		p := s.Book.Prospect(run).Promise
		if p == nil || p.Cuts {
			s.t.Fatalf("run1 is promised %+v", p)
		}
		s.during(p.At.Sub(s.Now))
		s.goesOn(2 * time.Second)
		if p = s.Book.Prospect(run).Promise; p == nil || !p.At.After(s.Now) {
			s.t.Fatalf("it is %s, and run1 is promised %+v", s.Now, p)
		}
	})
}

// A Run whose turn has come takes its places where others are leaving already.
func TestATurnThatComesIsTaken(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, patient(90))
		s.work()
		_, turn := s.leftEarly()
		s.during(turn.Sub(s.Now))
		s.goesOn(2 * time.Second)
		if n := s.Book.Prospect(s.Runs["run1"].UID).Leaving; n != 1 {
			s.t.Fatalf("run1 waits for %d pods", n)
		}
	})
}

// A date that came while nobody led stands: it is decided in the next cycle who is cut, and not canceled before that.
func TestADateThatCameWhileNobodyLedStands(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.full()
		s.during(reservationLead + time.Minute)
		s.restart()
		s.refused(s.pod("run1-0"))
		s.Book.WorkOut(s.Runs["run1"].UID, s.Now)
		s.reconcile("run1")
		s.unbroken("run1-r0")
	})
}

// unbroken asserts that a Reservation has not ended.
func (s *storm) unbroken(name string) {
	s.t.Helper()
	if r := s.Reservations[name]; r == nil || r.Ended() {
		s.t.Fatalf("Reservation %s has ended:\n%s", name, s.story())
	}
}

// thirdOfTwo has the date come of run1, while run0 and run2 hold all there is.
func (s *storm) thirdOfTwo() {
	s.fleet("d0", 2)
	s.setBudget("a", "org:a", 64)
	s.submit("run0", "org:a", 1, 1, 8)
	s.submit("run2", "org:a", 1, 1, 8)
	s.work()
	s.during(time.Second)
	s.submit("run1", "org:a", 1, 1, 8)
	s.work()
	s.due()
}

// checks has it be decided who is cut for a Run whose date has come, and returns what other rules are to be asked.
func (s *storm) checks(run string) *book.Check {
	s.t.Helper()
	s.refused(s.pod(run + "-0"))
	c := s.Book.Check(s.Runs[run].UID, s.Now)
	if c == nil || !c.Cuts {
		s.t.Fatalf("nothing is decided: %+v", c)
	}
	return c
}

// Other rules turn down what has been decided, and it is decided anew: meanwhile no date is canceled.
func TestADateStandsWhileItIsDecidedAnew(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.thirdOfTwo()
		pod, c := s.pod("run1-0"), s.checks("run1")
		s.Book.Conclude(c, []book.Turning{{Pod: pod, Node: c.Places[0].Node, Why: "no"}}, false, s.Now)
		s.reconcile("run1")
		s.unbroken("run1-r0")
	})
}

// It cannot be found out what other rules say of what has been decided, as where the scheduler has a node a moment
// later than the book: that is decided anew within seconds, and not a minute later.
func TestADecisionThatNothingIsKnownOfRestsForSeconds(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.thirdOfTwo()
		pod, c := s.pod("run1-0"), s.checks("run1")
		c.Unsure = true
		s.Book.Conclude(c, []book.Turning{{Pod: pod, Node: c.Places[0].Node, Why: "unsure"}}, true, s.Now)
		for range 10 {
			s.during(time.Second)
			s.work()
			s.refused(pod)
		}
		if s.Runs["run1"].Status.Phase != rqv1.RunRunning {
			s.t.Fatalf("it does not run ten seconds later:\n%s", s.story())
		}
	})
}

// A Run that waits for the limit of cuts since its turn came is not due again and again until then.
func TestATurnThatIsHeldBackIsOver(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Book.LimitCuts(0)
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, patient(90))
		s.submitWithSpares("run2", "org:a", 1, 1, 8, 0, patient(90))
		s.work()
		p, turn := s.leftEarly()
		s.during(turn.Sub(s.Now) + time.Second)
		s.RemoveNode(p.Nodes[0].Node)
		s.goesOn(2 * time.Second)
		if next, due := s.Book.NextDue(); due && next.Before(s.Now.Add(time.Minute)) {
			s.t.Fatalf("it is due at once, again and again: at %s", next)
		}
		if p := s.Book.Prospect(s.Runs["run1"].UID); p.Brake == "" {
			s.t.Fatalf("nothing holds it back: %+v", p)
		}
	})
}

// A Run is at risk from a Reservation that a process has read, and of which it has not worked out whether it stands.
func TestARiskStandsUntilTheDateIsWorkedOutAnew(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.full()
		s.work()
		s.restart()
		s.reconcile("run0")
		if n := len(s.Runs["run0"].Status.AtRisk); n != 1 {
			s.t.Fatalf("run0 has %d risks after a restart: %+v", n, s.Runs["run0"].Status.Conditions)
		}
		s.DeleteRun("run1")
		s.work()
		if n := len(s.Runs["run0"].Status.AtRisk); n != 0 {
			s.t.Fatalf("run0 has %d risks although nobody waits", n)
		}
	})
}
