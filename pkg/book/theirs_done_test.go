package book_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// One of the first pods of a group is done and told to go, and a finalizer keeps it for as long as it likes. The others
// are made anew, those that come late once the other first one is ready: that one does not wait for what is done.
func TestAGroupDoesNotWaitForWhatIsDoneAndStays(t *testing.T) {
	for _, name := range []string{"run0", "run00"} { // in one of them pods have no ranks of their own
		tell(t, func(w *world) {
			w.fleet("d0", 4)
			w.setBudget("a", "org:a", 40)
			w.controllers.inOrder = true
			w.submitWithSpares(name, "org:a", 1, 4, 8, 0, ungrouped, theirs, func(s *rqv1.RunSpec) {
				s.Pods.Late, s.Pods.First = true, 2
			})
			w.rounds(6)
			w.running(name, "although its pods are there")
			w.endsAndStays(name, corev1.PodSucceeded)
			w.settle()
			w.checkSettled()
			if on := w.boundSlots(name); len(on) != 3 {
				t.Fatalf("its pods are on %v: %s", on, w.Runs[name].Status.Message)
			}
		})
	}
}

// endsAndStays has the second pod of a group end and, though it is deleted, stay; then all others are told to go.
func (w *world) endsAndStays(run string, as corev1.PodPhase) {
	ended := w.PodsOf(run)[1].DeepCopy()
	ended.Status.Phase, ended.Finalizers = as, []string{"example.com/keep"}
	ended.DeletionTimestamp = &metav1.Time{Time: w.Now}
	w.SetPod(ended)
	w.rounds(2)
	for slot, pods := range w.Slots(w.Runs[run].UID) {
		for _, pod := range pods {
			if slot != 1 {
				w.TerminateWithin(pod.UID, nil)
			}
		}
	}
}

// Nor does it wait for one that has failed and stays, for which no other is made.
func TestAGroupDoesNotWaitForWhatHasFailedAndStays(t *testing.T) {
	for _, name := range []string{"run0", "run00"} {
		tell(t, func(w *world) {
			w.fleet("d0", 4)
			w.setBudget("a", "org:a", 40)
			w.submitWithSpares(name, "org:a", 1, 4, 8, 0, ungrouped, theirs)
			w.rounds(6)
			w.running(name, "although its pods are there")
			w.controllers.less[slot{w.Runs[name].UID, 1}] = true
			w.endsAndStays(name, corev1.PodFailed)
			w.rounds(8)
			w.Pass(gangDeadline)
			w.rounds(8)
			if on := w.boundSlots(name); len(on) != 3 {
				w.t.Fatalf("its pods are on %v: %s", on, w.Runs[name].Status.Message)
			}
		})
	}
}

// A pod that has failed and stays does not keep its group in a domain that has no room for it any more, once nothing is
// kept for its rank.
func TestAGroupMovesWithoutWhatHasFailedAndStays(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.fleet("d1", 3)
		w.setBudget("a", "org:a", 24)
		w.submitWithSpares("run00", "org:a", 1, 3, 8, 0, theirs)
		w.rounds(4)
		w.running("run00", "although all its pods are there")
		from, to, uid := w.domains("run00")[2], w.freeOf("run00", 2), w.Runs["run00"].UID
		w.controllers.less[slot{uid, 2}] = true
		w.EndPod(w.Slots(uid)[2][0].UID, corev1.PodFailed)
		for range 3 {
			w.rounds(3)
			w.Pass(gangDeadline)
		}
		w.setBudget("b", "org:b", 8)
		w.submit("run1", "org:b", 1, 1, 8)
		w.rounds(4)
		w.running("run1", "beside run00")
		w.Lose(w.boundSlots("run00")[1])
		w.rounds(8)
		w.running("run00", "although there is room for the rest of its group")
		if diff := cmp.Diff(map[int]string{0: to, 1: to, 2: from}, w.domains("run00")); diff != "" {
			w.t.Fatalf("domains (-want +is):\n%s%s", diff, w.describe("run00"))
		}
	})
}
