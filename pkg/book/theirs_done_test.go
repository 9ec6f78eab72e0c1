package book_test

import (
	"testing"

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
			done := w.PodsOf(name)[1].DeepCopy()
			done.Status.Phase, done.Finalizers = corev1.PodSucceeded, []string{"example.com/keep"}
			done.DeletionTimestamp = &metav1.Time{Time: w.Now}
			w.SetPod(done)
			w.rounds(2)
			for slot, pods := range w.Slots(w.Runs[name].UID) {
				for _, pod := range pods {
					if slot != 1 {
						w.TerminateWithin(pod.UID, nil)
					}
				}
			}
			w.settle()
			w.checkSettled()
			if on := w.boundSlots(name); len(on) != 3 {
				t.Fatalf("its pods are on %v: %s", on, w.Runs[name].Status.Message)
			}
		})
	}
}
