package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Both ranks of a Run die, and the process with them, and then the node of one is lost. What is kept where the other
// was, for it to start again, is its CPU too, whoever is left to tell: the rank that has lost its node does not fit
// beside it.
func TestTheOwnPlaceOfADeadRankKeepsItsCPU(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 2, 2, 0, checkpointed, withCPU("9", 0))
		w.settle()
		lost := w.on("run0-0")
		for _, uid := range w.beganPods() {
			w.EndPod(uid, corev1.PodFailed)
		}
		for len(w.OpenLeases()) > 0 {
			w.reconcile("run0")
		}
		for _, uid := range w.SortedPods() {
			w.DeletePod(uid)
		}
		w.Lose(lost)
		w.crash()
		w.rounds(6)
		w.waits("run0", "on a node that one rank fills")
	})
}
