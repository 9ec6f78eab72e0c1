package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// suspend suspends a Run, or resumes it.
func (w *world) suspend(name string, yes bool) {
	w.amend(name, func(s *rqv1.RunSpec) { s.Suspend = yes })
}

// suspendActions have Runs be suspended and resumed at any moment, but for those of others' pods, whose spec nobody
// writes (R41).
func (w *world) suspendActions(disturb func()) map[string]func(*rapid.T) {
	set := func(t *rapid.T, yes bool) {
		name, ok := pick(t, "run", w.Live())
		if run := w.Runs[name]; ok && run != nil && run.Spec.Suspend != yes && !run.Spec.Theirs() {
			w.suspend(name, yes)
			disturb()
			w.checkSuspended()
		}
	}
	return map[string]func(*rapid.T){
		"suspend": func(t *rapid.T) { set(t, true) },
		"resume":  func(t *rapid.T) { set(t, false) },
		"suspend while rules are asked": func(t *rapid.T) {
			w.Meanwhile = func() { set(t, true) }
		},
	}
}

// resumeAll resumes all Runs, and reports whether there were any.
func (w *world) resumeAll() (any bool) {
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		if w.Runs[name].Spec.Suspend {
			w.suspend(name, false)
			any = true
		}
	}
	return any
}

// checkSuspended asserts that nothing is promised to suspended Runs, decided for them, or kept for them.
func (w *world) checkSuspended() {
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		run := w.Runs[name]
		if !run.Suspended() {
			continue
		}
		p := w.Book.Prospect(run.UID)
		if p.Promise != nil || p.Activation != nil || p.InLine != nil || p.Refusal != nil || p.GrowTo > 0 || p.Leaving > 0 {
			w.t.Fatalf("R39: %s is suspended, and there is this for it: %+v", name, p)
		}
		for _, pod := range w.PodsOf(name) {
			if on := w.Book.Assigned(pod.UID); on != "" && pod.Spec.NodeName == "" && !w.mayHaveLease(pod.UID) {
				w.t.Fatalf("R39: pod %s of a suspended Run has a place on %s", pod.Name, on)
			}
		}
	}
}

// mayHaveLease reports whether a pod has an open Lease, or one that is being written.
func (w *world) mayHaveLease(pod types.UID) bool {
	open, _ := w.Book.Unsettled(pod)
	return open || slices.ContainsFunc(w.OpenLeases(), func(l *rqv1.Lease) bool { return l.PodUID() == pod })
}

// checkHeldBack asserts that suspended Runs have nothing once everybody has done their work.
func (w *world) checkHeldBack() {
	w.checkSuspended()
	for _, name := range slices.Sorted(maps.Keys(w.Runs)) {
		run := w.Runs[name]
		if !run.Suspended() || run.DeletionTimestamp != nil || w.Ends.Len() > 0 {
			continue
		}
		if run.Status.Phase != rqv1.RunPending || run.Status.PendingReservation != "" {
			w.t.Fatalf("R39: %s is suspended and %s: %+v", name, run.Status.Phase, run.Status)
		}
		for _, pod := range w.PodsOf(name) {
			if !(run.Spec.Opportunistic && rank.Ended(pod)) && !w.Lost(pod.Spec.NodeName) {
				w.t.Fatalf("R39: %s is suspended and has pod %s (%s)", name, pod.Name, pod.Status.Phase)
			}
		}
	}
}

// closed returns with which reasons the Leases of a Run have been closed, and how many are open.
func (w *world) closedOf(name string) (reasons map[rqv1.ClosureReason]int, open int) {
	reasons = map[rqv1.ClosureReason]int{}
	for _, l := range w.Leases {
		if l.Spec.RunRef.Name != name {
			continue
		}
		if l.Status.Closed {
			reasons[l.Status.ClosureReason]++
		} else {
			open++
		}
	}
	return reasons, open
}

// A Run that is suspended before it starts gets nothing; resumed, it starts, before a younger one that waits.
func TestASuspendedRunIsHeldBack(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(r *rqv1.RunSpec) { r.Suspend = true })
		s.work()
		if pods := s.PodsOf("run0"); len(pods) > 0 {
			s.t.Fatalf("a suspended Run has %d pods", len(pods))
		}
		s.Book.WorkOutNext(s.Now, 0)
		s.work()
		if f := s.Runs["run0"].Status.Forecast; f == nil || f.GPUs != 8 || f.Refusal != nil || f.EarliestStart != nil {
			s.t.Fatalf("it would start at once, and is forecast to: %+v", f)
		}
		s.Pass(time.Minute)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.running("run1", "while the older one is suspended")
		s.submit("run2", "org:a", 1, 1, 8)
		s.work()
		s.suspend("run0", false)
		s.work()
		if s.Runs["run0"].Status.Forecast != nil {
			s.t.Fatal("a Run that waits keeps the forecast that it had while it was suspended")
		}
		s.finish("run1")
		s.work()
		s.running("run0", "which is older than run2")
	})
}

// A Run that runs gives everything up, spares and all, and keeps its place by age.
func TestARunIsSuspendedWhileItRuns(t *testing.T) {
	for _, crash := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			for i := range 3 {
				s.addNode(fmt.Sprintf("n%d", i), "d0")
			}
			s.setBudget("a", "org:a", 32)
			s.submitWithSpares("run0", "org:a", 1, 2, 8, 1, patient(20))
			s.work()
			s.running("run0", "at first")
			s.submit("run1", "org:a", 1, 1, 8)
			s.work()
			s.suspend("run0", true)
			s.work()
			if crash {
				s.restart()
			}
			s.during(20 * time.Second)
			s.work()
			s.running("run1", "once what run0 held is free")
			want := map[rqv1.ClosureReason]int{rqv1.ClosedSuspended: 3}
			if reasons, open := s.closedOf("run0"); open > 0 || !cmp.Equal(reasons, want) {
				s.t.Fatalf("%d Leases are open, and they closed as %v", open, reasons)
			}
			s.checkHeldBack()
			s.Book.WorkOutNext(s.Now, 0)
			s.work()
			f := s.Runs["run0"].Status.Forecast
			if f == nil || f.Refusal == nil || f.EarliestStart == nil || f.Expected == nil || f.Expected.DeficitGPUs != 8 {
				s.t.Fatalf("the forecast is %+v", f)
			}
			s.finish("run1")
			s.suspend("run0", false)
			s.work()
			s.running("run0", "again")
		})
	}
}

// Suspended and resumed before its pods have gone, a Run still tells why they went.
func TestARunIsResumedBeforeItsPodsHaveGone(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 8)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, patient(20))
		s.work()
		s.suspend("run0", true)
		s.during(2 * time.Second)
		s.work()
		s.suspend("run0", false)
		s.work()
		s.restart()
		s.during(30 * time.Second)
		s.work()
		s.running("run0", "again")
		want := map[rqv1.ClosureReason]int{rqv1.ClosedSuspended: 1}
		if reasons, open := s.closedOf("run0"); open != 1 || !cmp.Equal(reasons, want) {
			s.t.Fatalf("%d Leases are open, and they closed as %v", open, reasons)
		}
	})
}

// The shards of an opportunistic Run go, and those that have completed are not made again.
func TestAnOpportunisticRunIsSuspended(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.sweep("run0", "org:a", 2, 4)
		w.settle()
		w.running("run0", "at first")
		w.EndPod(w.pod("run0-0"), corev1.PodSucceeded)
		w.suspend("run0", true)
		w.settle()
		w.checkHeldBack()
		if pods := w.PodsOf("run0"); len(pods) != 1 {
			w.t.Fatalf("it has %d pods", len(pods))
		}
		w.suspend("run0", false)
		w.settle()
		w.running("run0", "again")
		want := map[rqv1.ClosureReason]int{rqv1.ClosedSuspended: 1, rqv1.ClosedCompleted: 1}
		if reasons, open := w.closedOf("run0"); open != 1 || !cmp.Equal(reasons, want) {
			w.t.Fatalf("%d Leases are open, and they closed as %v", open, reasons)
		}
	})
}

// A Run whose turn has come is suspended: nobody goes for it who has not been told.
func TestAnActivationOfASuspendedRunIsCalledOff(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.full()
		s.during(reservationLead)
		s.Book.Due(s.Now)
		s.Act()
		for _, uid := range s.SortedPods() {
			s.cycle(uid)
		}
		if s.Book.Decided(s.Runs["run1"].UID) == nil {
			s.t.Fatalf("nothing has been decided:\n%s", s.story())
		}
		s.suspend("run1", true)
		s.disturb()
		s.work()
		s.checkHeldBack()
		s.running("run0", "which was drawn for a Run that has been suspended")
		if r := s.Reservations["run1-r0"]; r.Status.State != rqv1.ReservationCanceled {
			s.t.Fatalf("the Reservation is %s", r.Status.State)
		}
	})
}
