package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The only rank of a group dies on a node that loses its label, and a process begins that has not seen that label.
// The group's spare is lost, and there is room in another domain alone: it is not placed there, since the rank goes on
// where it was.
func TestASpareStaysInTheDomainOfARankThatComes(t *testing.T) {
	tell(t, func(w *world) {
		own, spare := w.rankDies()
		w.unlabel(own)
		w.crash()
		w.Lose(spare)
		w.rounds(3)
		clear(w.controllers.less)
		w.rounds(6)
		if on := w.boundSlots("run00")[0]; on != own {
			w.t.Fatalf("the rank is on %q, want %s, where it was", on, own)
		}
	})
}

// The rank does not come for so long that nothing is kept for it, and the spare is placed in the other domain
// meanwhile: the rank does not go back where it was.
func TestARankDoesNotGoBackToAnotherDomainThanItsSpares(t *testing.T) {
	tell(t, func(w *world) {
		own, spare := w.rankDies()
		w.DeletePod(w.Slots(w.Runs["run00"].UID)[0][0].UID)
		for range 3 {
			w.Pass(gangDeadline + time.Second)
			w.rounds(3)
		}
		w.cordoned(own, true)
		w.Lose(spare)
		w.rounds(6)
		w.cordoned(own, false)
		if domain := w.domainOf(w.Nodes[w.on("run00-s0")]); domain != "d1" {
			w.t.Fatalf("the spare is in %q", domain)
		}
		w.unlabel(own)
		w.crash()
		w.rounds(3)
		clear(w.controllers.less)
		w.rounds(6)
		w.running("run00", "although there is room beside its spare")
	})
}

// rankDies has the rank of one of two groups die, whose controller makes no other for now. It returns the nodes of the
// rank and of its spare, which are all that there are of their domain.
func (w *world) rankDies() (own, spare string) {
	w.fleet("d0", 2)
	w.fleet("d2", 2)
	w.setBudget("a", "org:a", 64)
	w.submitWithSpares("run00", "org:a", 2, 1, 8, 1, theirs, checkpointed)
	w.rounds(3)
	w.running("run00", "although its pods are there")
	w.fleet("d1", 2)
	own, spare = w.boundSlots("run00")[0], w.on("run00-s0")
	at := slot{w.Runs["run00"].UID, 0}
	w.controllers.less[at] = true
	w.EndPod(w.Slots(at.run)[0][0].UID, corev1.PodFailed)
	w.rounds(2)
	return own, spare
}

// cordoned has somebody cordon a node, or make it serve again.
func (w *world) cordoned(name string, yes bool) {
	node := w.Nodes[name].DeepCopy()
	node.Spec.Unschedulable = yes
	w.SetNode(node)
}
