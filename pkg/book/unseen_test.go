package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A gang whose node the scheduler does not see yet is tried again within a second, and not in a hot loop; when the node
// does not come it gives its GPUs back.
func TestAGangOnANodeThatTheSchedulerDoesNotSee(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 16)
		w.submit("run0", "org:a", 1, 2, 4)
		w.reconcile("run0")
		lead := w.pod("run0-0")
		if _, refusal := w.Book.Place(lead, w.Now); refusal != nil {
			w.t.Fatal(refusal)
		}
		w.Book.TakeActions()
		first := w.Book.Unseen(lead, "n0", "not seen")
		if first <= 0 || first >= time.Second {
			w.t.Fatalf("it is tried again after %s", first)
		}
		w.Book.Again(lead)
		if pods := w.Book.TakeActions().Activate; len(pods) != 1 || pods[0].UID != lead {
			w.t.Fatalf("it is not tried again: %v", pods)
		}
		waited := first
		for last := first; w.Book.Assigned(lead) != ""; {
			wait := w.Book.Unseen(lead, "n0", "not seen")
			if wait > 0 && wait < last {
				w.t.Fatalf("it is tried again after %s and then after %s", last, wait)
			}
			if last, waited = wait, waited+wait; waited > 10*time.Second {
				w.t.Fatalf("it holds GPUs on a node that does not come")
			}
		}
		if w.Book.Unseen(lead, "n0", "not seen") != 0 {
			w.t.Fatalf("it is tried on a node that it has no more")
		}
		w.settle()
		w.running("run0", "although the node has come")
	})
}

// The same goes for a rank of a Run that runs.
func TestALostRankOnANodeThatTheSchedulerDoesNotSee(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(4, 2, 0)
		w.DeletePod(w.pod("run0-0"))
		for range 3 {
			w.reconcile("run0")
			w.Act()
		}
		rank := w.pod("run0-0")
		node, refusal := w.Book.Place(rank, w.Now)
		if refusal != nil {
			w.t.Fatal(refusal)
		}
		for range 10 {
			w.Book.Unseen(rank, node, "not seen")
		}
		if w.Book.Assigned(rank) == node {
			w.t.Fatalf("the rank is still to go to %s", node)
		}
		w.settle()
		w.running("run0", "there is room elsewhere")
	})
}

// tellsOfNode tells of a node, for which one Run is to be looked at.
func (w *world) tellsOfNode(node *corev1.Node, run string) {
	w.Act()
	w.Book.TakeActions()
	w.SetNode(node)
	if runs := w.Book.TakeActions().Reconcile; len(runs) != 1 || runs[0].Name != run {
		w.t.Fatalf("looked at are %v, want %s", runs, run)
	}
}

// A node that has come anew under its name is looked at, although it is what the one before was.
func TestANodeThatIsMadeAnewIsLookedAt(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(4, 2, 1)
		anew := w.Nodes[w.on("run0-0")].DeepCopy()
		anew.UID = "another"
		w.DeletePod(w.pod("run0-0"))
		w.tellsOfNode(anew, "run0")
	})
}

// Nothing is recorded of one that has come anew while the loss of the one before was being recorded: it serves.
func TestANodeThatIsMadeAnewWhileItsLossIsRecorded(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.Book.SetLosing([]string{"n0"}, true)
		anew := w.Nodes["n0"].DeepCopy()
		anew.UID = "another"
		w.SetNode(anew) // a new list tells of both at once
		w.submit("run0", "org:a", 1, 1, 8)
		w.settle()
		w.running("run0", "although the new node has never been lost")
	})
}

// A pod is made and deleted while the watch of Runs' pods hangs, so that only the scheduling queue has seen it: nothing
// of it is remembered.
func TestAPodThatOnlyTheQueueHasSeenIsForgotten(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 1)
		w.setBudget("a", "org:a", 8)
		w.submit("run0", "org:a", 1, 1, 8)
		w.Hang()
		w.reconcile("run0")
		for _, uid := range w.SortedPods() {
			w.Book.Gate(w.Pods[uid])
		}
		w.DeleteRun("run0")
		w.CatchUp()
		w.reconcile("run0")
		if remains := w.Book.Remains(); len(remains) > 0 {
			w.t.Fatalf("the book still knows: %v", remains)
		}
	})
}
