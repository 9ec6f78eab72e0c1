package book_test

import (
	"slices"
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
	refusal := w.book.Refusal(w.runs[run].UID)
	if refusal == nil || refusal.Reason != reason || w.runs[run].Status.Message != refusal.Message {
		w.t.Fatalf("%s is refused with %+v and says %q, want %s", run, refusal, w.runs[run].Status.Message, reason)
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
			w.deleteRun(map[string]string{"run1": "run0", "run2": "run1", "run3": "run2"}[next])
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
		opens := metav1.NewTime(w.now.Add(24 * time.Hour))
		w.budgets["a"] = w.budgets["a"].DeepCopy()
		w.budgets["a"].Spec.Envelopes[0].Start = &opens
		w.budgets["a"].Generation = int64(w.nextUID)
		w.book.SetBudget(w.budgets["a"])
		w.submit("run0", "org:a", 1, 1, 8)
		w.setBudget("b", "org:b", 8)
		w.submit("run1", "org:b", 1, 1, 8)
		w.settle()
		w.refusedFor("run0", plan.WindowClosed)
		w.running("run1", "in the meantime")
		p := w.book.Prospect(w.runs["run0"].UID).Promise
		if p == nil || !p.At.Equal(opens.Add(time.Second)) {
			w.t.Fatalf("the promise is %+v, want it a second after %s", p, opens)
		}
		w.deleteRun("run1")
		w.settle()
		w.pass(opens.Sub(w.now))
		w.book.WindowPassed()
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
			return slices.Contains(w.book.TakeActions().Reconcile, types.NamespacedName{Namespace: "ns", Name: run})
		}
		w.book.TakeActions()
		w.deleteRun("run0")
		for _, lease := range w.openLeases() {
			closed := lease.DeepCopy()
			closed.Status = rqv1.LeaseStatus{Closed: true, Ended: &metav1.MicroTime{Time: w.now}, ClosureReason: rqv1.ClosedDeleted}
			w.leases[lease.Name] = closed
			w.book.SetLease(closed)
		}
		if told("run2") {
			w.t.Fatalf("run2 is looked at although the money is enough for run1 alone")
		}
		if w.book.Unpaid(w.runs["run1"].UID, w.now) || !w.book.Unpaid(w.runs["run2"].UID, w.now) {
			w.t.Fatalf("run1 is to have pods, and run2 none")
		}
		w.book.TakeActions()
		w.book.Refresh(w.now.Add(time.Second), 8)
		if !told("run2") {
			w.t.Fatalf("run2 is not looked at although run1 has not taken the money")
		}
	})
}
