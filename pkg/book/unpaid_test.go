package book_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// refusedFor asserts that a Run waits for a reason, without a pod.
func (w *world) refusedFor(run string, reason plan.Reason) {
	w.t.Helper()
	refusal := w.Book.Refusal(w.Runs[run].UID)
	message := w.Runs[run].Status.Message // which may go on with who is ahead
	if refusal == nil || refusal.Reason != reason || !strings.HasPrefix(message, refusal.Message) {
		w.t.Fatalf("%s is refused with %+v and says %q, want %s", run, refusal, message, reason)
	}
	if pods := w.podsOf(run); len(pods) > 0 {
		w.t.Fatalf("%s has pods %v although nobody can pay for it", run, pods)
	}
}

func TestARunThatNobodyCanPayForHasNoPods(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.submit("run0", "org:a", 1, 2, 8)
		w.settle()
		w.refusedFor("run0", plan.NoBudget)
		w.setBudget("a", "org:a", 8)
		w.settle()
		w.refusedFor("run0", plan.InsufficientBudget)
		w.crash()
		w.settle()
		w.refusedFor("run0", plan.InsufficientBudget)
		w.setBudget("a", "org:a", 16)
		w.settle()
		w.running("run0", "although its owner can pay by now")
		w.checkSettled()
	})
}

// A malleable Run that could be paid for at its narrowest has pods.
func TestTheNarrowestWidthMustBePaidFor(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 8)
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, ungrouped, elastic(1, 1))
		w.settle()
		w.running("run0", "at its narrowest")
	})
}

// What one Run gives back is for the oldest of those that wait for the money: the others go on without pods.
func TestMoneyThatIsFreeMakesPodsForOneRun(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 8)
		for _, run := range []string{"run0", "run1", "run2", "run3"} {
			w.submit(run, "org:a", 1, 1, 8)
			w.settle()
		}
		for _, next := range []string{"run1", "run2", "run3"} {
			w.running(map[string]string{"run1": "run0", "run2": "run1", "run3": "run2"}[next], "first")
			w.refusedFor(next, plan.InsufficientBudget)
			w.refusedFor("run3", plan.InsufficientBudget)
			w.DeleteRun(map[string]string{"run1": "run0", "run2": "run1", "run3": "run2"}[next])
			w.settle()
		}
		w.running("run3", "last")
	})
}

// A Run that waits for a window to open is promised when, before it has a pod.
func TestAWindowIsPromisedWithoutPods(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		opens := metav1.NewTime(w.Now.Add(24 * time.Hour))
		w.Budgets["a"] = w.Budgets["a"].DeepCopy()
		w.Budgets["a"].Spec.Envelopes[0].Start = &opens
		w.Budgets["a"].Generation = int64(w.NextUID)
		w.Book.Budgets.SetBudget(w.Budgets["a"])
		w.submit("run0", "org:a", 1, 1, 8)
		w.setBudget("b", "org:b", 8)
		w.submit("run1", "org:b", 1, 1, 8)
		w.settle()
		w.refusedFor("run0", plan.WindowClosed)
		w.running("run1", "in the meantime")
		p := w.Book.Prospect(w.Runs["run0"].UID).Promise
		if p == nil || !p.At.Equal(opens.Add(time.Second)) {
			w.t.Fatalf("the promise is %+v, want it a second after %s", p, opens)
		}
		w.DeleteRun("run1")
		w.settle()
		w.Pass(opens.Sub(w.Now))
		w.Book.WindowPassed()
		w.settle()
		w.running("run0", "although the window is open")
	})
}

// Money that those who were woken for it have not used is for the next: here the pods of the older Run are never made.
func TestMoneyThatIsNotUsedIsForTheNext(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		for _, run := range []string{"run0", "run1", "run2"} {
			w.submit(run, "org:a", 1, 1, 8)
			w.settle()
		}
		told := func(run string) bool {
			return slices.Contains(w.Book.TakeActions().Reconcile, types.NamespacedName{Namespace: "ns", Name: run})
		}
		w.Book.TakeActions()
		w.DeleteRun("run0")
		w.closeLeases()
		if told("run2") {
			w.t.Fatalf("run2 is looked at although the money is enough for run1 alone")
		}
		if w.Book.Unpaid(w.Runs["run1"].UID, w.Now) || !w.Book.Unpaid(w.Runs["run2"].UID, w.Now) {
			w.t.Fatalf("run1 is to have pods, and run2 none")
		}
		w.waitsForPods("run2", "run1")
	})
}

// Of a Lease whose pod is gone it may be told that it was written when it is closed: its money is for those who wait.
func TestALeaseThatIsClosedBeforeItIsKnownGivesItsMoneyBack(t *testing.T) {
	tell(t, func(w *world) {
		first, lease := w.writing(8)
		w.DeletePod(first)
		w.DeleteRun("run0")
		w.submit("run2", "org:a", 1, 1, 8)
		w.reconcile("run2")
		w.refusedFor("run2", plan.InsufficientBudget)
		w.Book.TakeActions()
		ended := metav1.NewMicroTime(w.Now.Add(time.Second))
		lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: rqv1.ClosedDeleted}
		w.Book.SetLease(lease)
		if w.Book.Unpaid(w.Runs["run2"].UID, w.Now) {
			w.t.Fatalf("run2 is not asked about although the money is free")
		}
	})
}

// A Run that waits for money and could not start any more if it had it, because nodes have gone, is promised nothing
// once it is looked at again.
func TestWhatCannotStartIsPromisedNothing(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, lasting(time.Hour))
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 2, 8)
		s.work()
		if r := s.Reservations["run1-r0"]; r == nil || r.Status.State != rqv1.ReservationPending {
			s.t.Fatalf("run1 has no date:\n%s", s.story())
		}
		s.RemoveNode(map[string]string{"n0": "n1", "n1": "n0"}[s.on("run0-0")])
		s.amend("run1", func(r *rqv1.RunSpec) {
			r.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Hour}}
		})
		s.work()
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p != nil {
			s.t.Fatalf("run1 wants two nodes of one, and is promised them at %s", p.At)
		}
		if state := s.Reservations["run1-r0"].Status.State; state != rqv1.ReservationCanceled {
			s.t.Fatalf("its Reservation is %s", state)
		}
	})
}

// A Run that could be paid for, and whose pods a quota refuses, is promised nothing that others would have to stay away
// from.
func TestARunWithoutItsPodsKeepsNobodyFromItsRoom(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 8)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, lasting(time.Minute))
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p == nil {
			s.t.Fatalf("run1 has no date:\n%s", s.story())
		}
		s.quota(0)
		s.during(2 * time.Minute)
		s.work()
		s.during(time.Minute)
		s.work()
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p != nil || len(s.podsOf("run1")) > 0 {
			s.t.Fatalf("run1 has the pods %v and is promised a start at %s:\n%s", s.podsOf("run1"), p.At, s.story())
		}
		s.quota(-1)
		s.work()
		s.during(time.Minute)
		s.work()
		s.running("run1", "once its pods are made")
	})
}

// waitsForPods asserts that a Run is to have no pods for as long as one before it may take to come for the money, and
// is to have them then.
func (w *world) waitsForPods(run, before string) {
	unpaidAfter := func(d time.Duration) bool {
		for range 8 {
			w.Book.RefreshPromises(w.Now.Add(d))
		}
		return w.Book.Unpaid(w.Runs[run].UID, w.Now.Add(d))
	}
	for d := time.Duration(0); d < gangDeadline; d += time.Second {
		if !unpaidAfter(d) {
			w.t.Fatalf("%s is to have pods after %s although %s is about to take the money", run, d, before)
		}
	}
	if unpaidAfter(gangDeadline) {
		w.t.Fatalf("%s is to have no pods although %s has not taken the money", run, before)
	}
}

// closeLeases has those of Runs that are gone be closed.
func (w *world) closeLeases() {
	for _, lease := range w.OpenLeases() {
		if w.Runs[lease.Spec.RunRef.Name] != nil {
			continue
		}
		closed := lease.DeepCopy()
		closed.Status = rqv1.LeaseStatus{Closed: true, Ended: &metav1.MicroTime{Time: w.Now},
			ClosureReason: rqv1.ClosedDeleted}
		w.SetLease(closed)
	}
}
