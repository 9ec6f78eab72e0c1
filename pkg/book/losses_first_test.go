package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// lossesWithin is for how long a process that begins lets others wait for ranks that were lost.
const lossesWithin = 20 * time.Second

// A process that begins beside a Run with a lost rank gives nobody else GPUs until that has a place. If nobody decides
// about it, as when the API server refuses all that is written for that Run, the others wait no longer than their time.
func TestAnUndecidedLossHoldsOthersBackForAWhile(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 2, 8)
		w.settle()
		w.running("run0", "on a fleet that is free")
		w.submit("run1", "org:a", 1, 1, 8)
		w.round()
		w.ForgetNode("n1")
		w.addNode("n2", "d1") // where the lost rank cannot go
		w.crash()
		work := func() {
			w.reconcile("run1")
			w.Book.Advance(w.Now)
			w.Act()
			for _, uid := range w.SortedPods() {
				w.cycle(uid)
			}
		}
		for end := w.Now.Add(19 * time.Second); w.Now.Before(end); w.Pass(time.Second) {
			work()
			if node := w.Book.Assigned(w.pod("run1-0")); node != "" {
				w.t.Fatalf("run1 has %s, and nothing was decided about run0", node)
			}
		}
		if next, known := w.Book.Next(w.Now); !known || next.After(w.Now.Add(2*time.Second)) {
			w.t.Fatalf("the book looks again at %s (%v)", next, known)
		}
		w.Pass(2 * time.Second)
		work()
		if w.Book.Assigned(w.pod("run1-0")) != "n2" {
			w.t.Fatal("run1 waits longer than it has to")
		}
	})
}

// What is lost is waited for by those alone who want GPUs of its type, and not when the node turns out to stand.
func TestALossThatIsNoneHoldsNobodyBack(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 1, 8)
		w.settle()
		w.submit("run1", "org:a", 1, 1, 8)
		node := w.Nodes[w.on("run0-0")]
		w.ForgetNode(node.Name)
		w.crash()
		w.SetNode(node)
		for range 3 {
			w.Pass(time.Second)
			w.round()
		}
		w.running("run1", "although no rank is lost")
		if phase := w.Runs["run0"].Status.Phase; phase != rqv1.RunRunning && phase != rqv1.RunFailed {
			w.t.Errorf("run0 is %s", phase)
		}
	})
}
