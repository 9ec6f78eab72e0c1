package book_test

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// payByDomain has the Budget of org:a have an envelope of 16 GPUs for each of some fabric domains.
func (w *world) payByDomain(domains ...string) {
	w.setBudget("a", "org:a", 16)
	b := w.Budgets["a"].DeepCopy()
	b.Spec.Envelopes = nil
	for _, domain := range domains {
		b.Spec.Envelopes = append(b.Spec.Envelopes, rqv1.Envelope{Name: domain, Flavor: flavor, Concurrency: 16,
			Selector: map[string]string{"fabric.domain": domain}})
	}
	b.Generation++
	w.NextUID++
	w.SetBudget(b)
}

// requeuedOn has run0, of two ranks, be requeued since it lost a node of d0, with money for 16 GPUs in all.
func (w *world) requeuedOn(pay func()) {
	w.fleet("d0", 2)
	pay()
	w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, checkpointed)
	w.settle()
	w.running("run0", "although it fits")
	w.Lose(w.on("run0-0"))
	w.rounds(6)
	w.waits("run0", "on one node")
}

// A rank is lost and gets a place that another envelope pays for. Until it is there who has paid for it does not pay
// for others: it may go back.
func TestTheMoneyOfALostRankIsKeptWhileAnotherPaysForItsPlace(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.payByDomain("d0", "d1")
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, ungrouped)
		w.settle()
		w.running("run0", "although it fits")
		w.Lose(w.on("run0-0"))
		w.addNode("d1-n00", "d1")
		w.reconcile("run0")
		if on := w.Book.Assigned(w.place("run0-0")); on != "d1-n00" {
			w.t.Fatalf("run0-0 is to go to %q", on)
		}
		w.addNode("d0-n09", "d0")
		w.submit("run1", "org:a", 1, 1, 8)
		w.tries("run1")
		w.check()
		w.Lose("d1-n00")
		w.check()
		w.settle()
		w.check()
		w.running("run0", "although there is a node for its rank")
		w.waits("run1", "on the money of a lost rank")
	})
}

// So it is with a Run that was requeued and is given places elsewhere.
func TestTheMoneyOfARequeuedRunIsKeptWhileAnotherPaysForItsPlaces(t *testing.T) {
	tell(t, func(w *world) {
		w.requeuedOn(func() { w.payByDomain("d0", "d1") })
		w.fleet("d1", 2)
		w.reconcile("run0")
		if on := w.Book.Assigned(w.place("run0-0")); on != "d1-n00" && on != "d1-n01" {
			w.t.Fatalf("run0-0 is to go to %q", on)
		}
		w.addNode("d0-n09", "d0")
		for _, run := range []string{"run1", "run2"} {
			w.submit(run, "org:a", 1, 1, 8)
			w.tries(run)
		}
		w.check()
		w.Lose("d1-n00")
		w.check()
		w.settle()
		w.check()
		w.checkSettled()
	})
}

// bindsFirst has the first of two ranks of run0 be bound that have their places again, and returns where the other is
// to go.
func (w *world) bindsFirst() (other string) {
	w.addNode("d0-n09", "d0")
	for range 3 {
		w.reconcile("run0")
		w.Act()
		for _, uid := range w.SortedPods() {
			w.cycle(uid)
		}
	}
	w.Bind(w.pod("run0-0"), sim.Written)
	if w.on("run0-0") == "" {
		w.t.Fatal("run0-0 is not bound")
	}
	return w.Book.Assigned(w.pod("run0-1"))
}

// A requeued Run starts again, and loses the place of one rank while the other is bound already. What paid for the one
// pays for no other Run, since the whole has to start once more.
func TestTheMoneyOfARequeuedRunIsKeptWhenItLosesSomeOfItsPlaces(t *testing.T) {
	tell(t, func(w *world) {
		w.requeuedOn(func() { w.setBudget("a", "org:a", 16) })
		w.Lose(w.bindsFirst())
		w.check()
		w.addNode("d1-n00", "d1")
		w.submit("run1", "org:a", 1, 1, 8)
		w.tries("run1")
		w.check()
		w.DeletePod(w.pod("run0-0"))
		w.check()
		w.rounds(4)
		w.settle()
		w.check()
		w.checkSettled()
	})
}

// It loses the place of the one and the pod of the other: what that one's Lease charges is not kept for it as well.
func TestARankOfARequeuedRunIsKeptNothingBesideItsLease(t *testing.T) {
	tell(t, func(w *world) {
		w.requeuedOn(func() { w.setBudget("a", "org:a", 16) })
		w.Lose(w.bindsFirst())
		w.DeletePod(w.pod("run0-0"))
		w.check()
		w.rounds(4)
		w.settle()
		w.check()
		w.checkSettled()
	})
}

// The pod of a lost rank goes while its Lease is being written, which is not: what was to pay for it is the rank's
// still.
func TestTheMoneyOfALostRankIsKeptWhenItsLeaseIsNotWritten(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 16)
		w.submit("run0", "org:a", 1, 2, 8)
		w.settle()
		w.running("run0", "although it fits")
		w.Pass(2 * gangDeadline)
		w.Lose(w.on("run0-0"))
		w.reconcile("run0")
		uid := w.place("run0-0")
		if w.Book.Assigned(uid) == "" {
			w.t.Fatal("run0-0 has no place")
		}
		lease, err := w.Book.NewLease(uid, w.Now)
		if err != nil {
			w.t.Fatal(err)
		}
		w.DeletePod(uid)
		w.Book.NotWritten(uid, named(lease))
		w.submit("run1", "org:a", 1, 1, 8)
		w.addNode("d1-n00", "d1")
		w.tries("run1")
		w.check()
		w.rounds(4)
		w.running("run0", "although it has room and money")
		w.waits("run1", "on the money of a lost rank")
	})
}
