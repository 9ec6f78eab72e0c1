package book_test

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// still has everybody come to rest, and asserts that nothing changes then before the instant that the book tells,
// however often and whenever it is asked.
func (s *storm) still(t *rapid.T) {
	s.Faults.Drop(sim.Crash)
	s.Faults.Drop(sim.Refused)
	s.Faults.Drop(sim.Late)
	s.work()
	for since := s.Now; s.Ends.Len() > 0; { // a pod that is told to go takes its time
		if s.Now.Sub(since) > time.Hour {
			s.t.Fatalf("some pod ends all the time:\n%s", s.story())
		}
		s.during(time.Second)
		s.work()
	}
	s.checkHeldBack()
	for range 100 {
		s.Book.Advance(s.Now)
		s.Book.WorkOutNext(s.Now, 0)
		if s.Act(); s.queued() {
			s.work()
			continue
		}
		next, ok := s.Book.Next(s.Now)
		if !ok {
			next = s.Now.Add(time.Hour)
		}
		if gap := next.Sub(s.Now); gap > 1 && s.Book.Quiet() {
			s.unmoved(s.Now.Add(time.Duration(rapid.Int64Range(1, int64(gap)-1).Draw(t, "before the next instant"))))
			return
		}
		s.during(max(0, min(next.Sub(s.Now), time.Second)))
	}
	s.t.Fatalf("there is something to be done all the time:\n%s", s.story())
}

// unmoved asserts that the book does nothing at an instant.
func (s *storm) unmoved(at time.Time) {
	tell := func() string { return fmt.Sprint(s.dates(), s.refusals(), s.widths(), s.fingerprint()) }
	before := tell()
	s.Book.Due(at)
	s.Book.Lapse(at)
	s.Book.GrowRuns(at)
	s.Book.Fill(at)
	s.Book.Sweep(at)
	if diff := cmp.Diff(book.ForQueue{}, s.Book.ToQueue().Take()); diff != "" {
		s.t.Fatalf("at %s, before anything is due, the queue is asked:\n%s\n%s", at, diff, s.story())
	}
	if diff := cmp.Diff(book.ForControllers{}, s.Book.Controllers().Take()); diff != "" {
		s.t.Fatalf("at %s, before anything is due, the controllers are asked:\n%s\n%s", at, diff, s.story())
	}
	if diff := cmp.Diff(before, tell()); diff != "" {
		s.t.Fatalf("at %s, before anything is due, the book changes:\n%s\n%s", at, diff, s.story())
	}
}
