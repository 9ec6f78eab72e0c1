package book_test

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// outdated has what a Run is promised that waits grow old, and returns the Run.
func (s *storm) outdated() types.UID {
	s.full()
	s.during(40 * time.Second)
	return s.Runs["run1"].UID
}

// Nobody waits while it is worked out when a Run starts.
func TestAPromiseIsWorkedOutBesideTheBook(t *testing.T) {
	tellStorm(t, func(s *storm) {
		run := s.outdated()
		was := s.Book.Prospect(run).Promise
		workOut, end := s.Book.Study(run, s.Now)
		if workOut == nil {
			s.t.Fatal("nothing is to be worked out")
		}
		held := 0
		s.Book.WatchHolds(func() func() { held++; return func() {} })
		if workOut(); held > 0 {
			s.t.Fatalf("the book is held %d times while a promise is worked out", held)
		}
		if end(); s.Book.Prospect(run).Promise == was {
			s.t.Fatal("nothing has come of it")
		}
		if workOut, _ = s.Book.Study(run, s.Now); workOut != nil {
			s.t.Fatal("it is to be worked out at once again")
		}
	})
}

// Nothing comes of what was worked out for a Run that is another by now, or waits for something else; it is worked out
// anew.
func TestWhatWasWorkedOutForAnotherComesToNothing(t *testing.T) {
	for what, change := range map[string]func(*storm){
		"it has been edited": func(s *storm) {
			run := s.Runs["run1"].DeepCopy()
			run.Generation++
			run.Spec.Resources.TotalGPUs = 16
			s.SetRun(run)
		},
		"it has been refused anew": func(s *storm) { s.refused(s.pod("run1-0")) },
		"its Reservation is gone":  func(s *storm) { s.remove("run1-r0"); s.Deliver() },
		"it is gone":               func(s *storm) { s.DeleteRun("run1") },
	} {
		t.Run(what, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				run := s.outdated()
				workOut, end := s.Book.Study(run, s.Now)
				workOut()
				change(s)
				then := s.Book.Prospect(run).Promise
				if end(); s.Book.Prospect(run).Promise != then {
					s.t.Fatalf("run1 is promised %+v", s.Book.Prospect(run).Promise)
				}
				s.work()
			})
		})
	}
}

// What changes the book while a promise is worked out does not change what that rests on. To be run with -race.
func TestTheBookGoesOnWhileAPromiseIsWorkedOut(t *testing.T) {
	f := newFleetOf(t)
	f.fill(func(int, []*corev1.Pod) {})
	pods := f.run(5000, 64, nil)
	f.refuse(pods)
	f.now = f.now.Add(time.Minute)
	workOut, end := f.book.Study("uid-run5000", f.now)
	var both sync.WaitGroup
	both.Go(workOut)
	for i := range 200 {
		f.run(6000+i, 1, []int{i})
		f.book.RemoveNode(nodeName(4999 - i))
		f.book.Budgets.RefreshBudgets(f.now)
	}
	both.Wait()
	end()
}

// A Run takes no place on a node that has come to be tainted while its start was worked out.
func TestARunTakesNoPlaceOnANodeThatItMayNotUseByNow(t *testing.T) {
	for _, tainted := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			s.crowd(true, nil)
			s.ForgetRun("run0")
			s.leave(s.pod("run0-0"), time.Minute)
			s.work()
			s.during(35 * time.Second)
			run := s.Runs["run2"].UID
			workOut, end := s.Book.Study(run, s.Now)
			if workOut == nil {
				s.t.Fatal("nothing is to be worked out")
			}
			workOut()
			if tainted {
				s.taint("n0")
			}
			end()
			if node := s.Book.Assigned(s.pod("run2-0")); (node != "") == tainted {
				s.t.Fatalf("tainted: %v, and run2 has its place on %q", tainted, node)
			}
		})
	}
}
