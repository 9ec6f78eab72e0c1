package book_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// A group starts again of which a pod has failed for good, and is there as long as its controller likes: it starts
// without that rank, at once where its controller says that it is to have fewer pods, and is not ended for it.
func TestAGroupStartsAgainWithoutWhatHasFailedForGood(t *testing.T) {
	for name, c := range map[string]struct {
		fails int
		wants int
		says  string
	}{
		"its controller says nothing": {fails: 1, wants: 4, says: "runs with 3 of 4 pods: the others have not been " +
			"created, and no places are kept for them"},
		"its controller says that it has three pods": {fails: 3, wants: 3, says: "bound 24 GPUs"},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				tell(t, func(w *world) {
					w.startTheirs()
					uid := w.Runs["run00"].UID
					w.controllers.less[slot{uid, c.fails}] = true
					w.EndPod(w.Slots(uid)[c.fails][0].UID, corev1.PodFailed)
					w.controllers.wants[uid] = c.wants
					w.rounds(3)
					w.Lose("d0-n00", "d0-n01", "d0-n02", "d0-n03", "d0-n04")
					w.rounds(6)
					w.waits("run00", "without nodes")
					w.fleet("d1", 4)
					w.rounds(6)
					began := w.podsOf("run00")
					for range 4 {
						w.Pass(gangDeadline/2 + 1)
						w.rounds(3)
						if restarts {
							w.crash()
						}
					}
					w.running("run00", "although all pods are there that come")
					if diff := cmp.Diff(began, w.podsOf("run00")); diff != "" {
						w.t.Errorf("its pods that have begun are ended (-before +after):\n%s", diff)
					}
					if is := w.Runs["run00"].Status.Message; is != c.says {
						w.t.Errorf("it says %s", is)
					}
					if held := w.heldGPUs(); held != 24 {
						w.t.Errorf("%d GPUs are held, want those of the pods that run", held)
					}
				})
			})
		}
	}
}
