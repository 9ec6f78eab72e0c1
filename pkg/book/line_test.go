package book_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Of many who wait the first have dates, and the others a place in line. Whoever comes to the front gets a date.
func TestThoseFarBackHaveAPlaceInLine(t *testing.T) {
	tellLongStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 800)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, lasting(time.Hour))
		s.work()
		const many = 34 // two more than have dates
		for i := range many {
			s.during(time.Second)
			s.submitWithSpares(fmt.Sprintf("run%02d", i), "org:a", 1, 1, 8, 0, lasting(time.Hour))
			s.work()
		}
		for range 3 {
			s.during(10 * time.Second)
			s.work()
		}
		for i := range many {
			p := s.Book.Prospect(s.Runs[fmt.Sprintf("run%02d", i)].UID)
			switch {
			case i < 32 && (p.InLine != nil || p.Promise == nil):
				s.t.Errorf("run%02d, which is among the first, has the promise %+v and the place %+v", i, p.Promise, p.InLine)
			case i >= 32 && (p.InLine == nil || p.Promise != nil):
				s.t.Errorf("run%02d has the promise %+v and the place %+v", i, p.Promise, p.InLine)
			case i >= 32 && p.InLine.Ahead != i:
				s.t.Errorf("run%02d has %d ahead of it", i, p.InLine.Ahead)
			}
		}
		for i := range 4 {
			next := s.Runs["run33"].DeepCopy()
			next.Name, next.UID, next.CreationTimestamp = "next", "next", metav1.NewTime(s.Now)
			want := &book.QueuePlace{Ahead: many - i, Of: many - i + 1, At: s.Now}
			o := s.Book.WhatIf(next, s.Now)
			if many-i < 32 {
				want = nil
			}
			diff := cmp.Diff(want, o.InLine, cmpopts.IgnoreUnexported(book.QueuePlace{}))
			if diff != "" || (o.Promise == nil) != (want != nil) {
				s.t.Errorf("a Run submitted now would have the promise %+v and the place (-want +got):\n%s", o.Promise, diff)
			}
			s.DeleteRun(fmt.Sprintf("run%02d", i))
			s.disturb()
		}
		for range 3 {
			s.during(10 * time.Second)
			s.work()
		}
		if p := s.Book.Prospect(s.Runs["run33"].UID); p.InLine != nil {
			s.t.Errorf("run33 is among the first, and has the place %+v", *p.InLine)
		}
		if s.t.Failed() {
			s.t.FailNow()
		}
	})
}

// Where a line moves fast nobody is told a new place more often than every 30 seconds, and everybody is told in the
// end.
func TestAPlaceInLineStandsForAWhile(t *testing.T) {
	tellLongStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 800)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, lasting(time.Hour))
		s.work()
		s.during(time.Second)
		const many = 64
		name := func(i int) string { return fmt.Sprintf("run%02d", i) }
		for i := range many {
			s.submitWithSpares(name(i), "org:a", 1, 1, 8, 0, lasting(time.Hour))
		}
		s.settles()
		last := s.Runs[name(many-1)].UID
		told := *s.Book.Prospect(last).InLine
		for i := range 28 {
			s.DeleteRun(name(i))
			s.disturb()
			if i != 15 && i != 27 { // a quarter fewer each time
				continue
			}
			s.during(time.Second)
			s.Book.RefreshPromises(s.Now)
			is := *s.Book.Prospect(last).InLine
			if since := is.At.Sub(told.At); since > 0 && since < 30*time.Second {
				s.t.Errorf("the last is told %d ahead %s after it was told %d", is.Ahead, since, told.Ahead)
			}
			told = is
		}
		s.settles()
		if is := s.Book.Prospect(last).InLine.Ahead; is != 35 {
			s.t.Errorf("the last is told %d ahead, and there are 35", is)
		}
	})
}

// A Run that the fleet is too small for waits for nodes, not for those ahead of it.
func TestARunThatNeverFitsHasNoPlaceInLine(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 800)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0)
		s.work()
		s.submitWithSpares("fits", "org:a", 1, 1, 8, 0)
		s.submitWithSpares("huge", "org:a", 1, 2, 8, 0)
		s.work()
		run := s.Runs["huge"]
		if p := s.Book.Prospect(run.UID); p.Refusal.Reason != plan.NeverFits || p.InLine != nil {
			s.t.Fatalf("it has the place %+v and is refused with %+v", p.InLine, p.Refusal)
		}
		if strings.Contains(run.Status.Message, "older") || run.Status.Queue != nil {
			s.t.Fatalf("it says %q, and has the place %+v", run.Status.Message, run.Status.Queue)
		}
	})
}

// A process that has just begun cancels no date before it has worked out whether that stands.
func TestADateStandsUntilItIsWorkedOutAnew(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.full()
		s.work()
		s.restart()
		waits := s.Runs["run1"].UID
		if _, refusal, _ := s.Place(s.Book, s.pod("run1-0")); refusal == nil {
			s.t.Fatal("run1 is not refused")
		}
		s.reconcile("run1")
		s.Book.Refused(s.pod("run1-0"), s.Now)
		s.reconcile("run1")
		s.Book.WorkOut(waits, s.Now)
		s.reconcile("run1")
		for name, r := range s.Reservations {
			if r.Ended() {
				s.t.Errorf("Reservation %s is %s: %s", name, r.Status.State, r.Status.Reason)
			}
		}
		if len(s.Reservations) != 1 || s.t.Failed() {
			s.t.Fatalf("run1 has %d Reservations", len(s.Reservations))
		}
	})
}

// A Run that is refused when it was to start, or whose date nobody has come to work out for long, is told one in that
// very cycle: what comes between cycles might wake it again and again before.
func TestADateIsWorkedOutInTheCycleOfWhoIsNeglected(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 800)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, lasting(time.Minute))
		s.work()
		s.submit("waits", "org:a", 1, 1, 8)
		s.work()
		waits := s.Runs["waits"].UID
		refused := func() *forecast.Promise {
			if !s.refused(s.pod("waits-0")) {
				s.t.Fatal("the Run is not refused")
			}
			return s.Book.Prospect(waits).Promise
		}
		date := s.Book.Prospect(waits).Promise.At
		s.Now = date.Add(time.Second)
		if p := refused(); p == nil || !p.At.After(s.Now) {
			s.t.Fatalf("the Run was to start at %s, was refused at %s, and is promised %+v", date, s.Now, p)
		}
		s.Reservations = nil
		s.restart()
		if p := refused(); p != nil {
			s.t.Fatalf("the Run is promised %+v before that was worked out", p)
		}
		s.Now = s.Now.Add(11 * time.Second)
		if p := refused(); p == nil {
			s.t.Fatal("the Run has no date after 11 s")
		}
	})
}

// What is said of a Run that has not been submitted is what would be said of it.
func TestARunThatNeverFitsWouldHaveNoPlaceInLine(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 800)
		s.submit("holder", "org:a", 1, 1, 8)
		s.submit("fits", "org:a", 1, 1, 8)
		s.submit("huge", "org:a", 1, 2, 8)
		s.work()
		next := s.Runs["huge"].DeepCopy()
		next.Name, next.UID = "next", "next"
		if o := s.Book.WhatIf(next, s.Now); o.Refusal.Reason != plan.NeverFits || o.InLine != nil {
			s.t.Fatalf("it would have the place %+v and be refused with %+v", o.InLine, o.Refusal)
		}
	})
}

// Runs that nobody can pay for, or that no node would do for, keep no others from having dates.
func TestThoseWhoAreShortOfSomethingElseTakeNoDates(t *testing.T) {
	for name, submit := range map[string]func(s *storm, name string){
		"money": func(s *storm, name string) { s.submit(name, "org:a", 1, 1, 8) },
		"nodes": func(s *storm, name string) { s.submit(name, "org:b", 1, 2, 8) },
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.addNode("n0", "d0")
				s.addNode("n1", "d1")
				s.setBudget("a", "org:a", 16)
				s.setBudget("b", "org:b", 800)
				s.submit("held0", "org:a", 1, 1, 8)
				s.submit("held1", "org:a", 1, 1, 8)
				s.work()
				for i := range 34 {
					s.during(time.Second)
					submit(s, fmt.Sprintf("short%02d", i))
				}
				s.work()
				s.during(time.Second)
				s.submit("run1", "org:b", 1, 1, 8)
				s.work()
				if p := s.Book.Prospect(s.Runs["run1"].UID); p.Promise == nil || p.InLine != nil {
					s.t.Errorf("run1 has the promise %+v and the place %+v", p.Promise, p.InLine)
				}
				last := s.Book.Prospect(s.Runs["short33"].UID)
				if last.Promise != nil || last.Refusal == nil || (last.InLine != nil) == last.Refusal.NeedsNodes() {
					s.t.Errorf("short33 has the promise %+v and the place %+v, and is refused with %+v", last.Promise,
						last.InLine, last.Refusal)
				}
				if s.t.Failed() {
					s.t.FailNow()
				}
			})
		})
	}
}
