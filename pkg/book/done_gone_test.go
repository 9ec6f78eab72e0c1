package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A group whose pods are made late loses all of its nodes when one of its pods is done and its object is gone. Nobody
// makes that again: the group starts without, once its place has been kept for as long as for any, and is not started
// again and again.
func TestALateGroupStartsAgainWithoutWhatIsDoneAndGone(t *testing.T) {
	for name, restarts := range map[string]bool{"run1": false, "run2": true, "run01": true} { // one's pods have own ranks
		tell(t, func(w *world) {
			w.fleet("d0", 2)
			w.setBudget("a", "org:a", 16)
			w.submitWithSpares(name, "org:a", 1, 3, 4, 0, lateFirst)
			w.rounds(9)
			w.running(name, "although its pods are there")
			done := w.Slots(w.Runs[name].UID)[1][0]
			w.EndPod(done.UID, corev1.PodSucceeded)
			w.rounds(2)
			w.DeletePod(done.UID)
			w.rounds(2)
			w.Lose("d0-n00", "d0-n01")
			w.rounds(6)
			w.waits(name, "without nodes")
			if restarts {
				w.crash()
			}
			w.fleet("d1", 2)
			w.rounds(6)
			first := w.Slots(w.Runs[name].UID)[0][0].UID
			for range 4 {
				w.Pass(gangDeadline / 2)
				w.rounds(3)
			}
			w.running(name, "although all pods are there that come")
			if held := w.heldGPUs(); held != 8 {
				w.t.Errorf("%d GPUs are held, want those of the pods that there are", held)
			}
			if pods := w.Slots(w.Runs[name].UID)[0]; len(pods) != 1 || pods[0].UID != first {
				w.t.Errorf("its first pod was made anew")
			}
		})
	}
}
