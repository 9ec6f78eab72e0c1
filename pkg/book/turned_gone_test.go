package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// A node turns a rank away, and somebody deletes the pod before anybody has looked: the end that is seen of it may be
// its last. The node has ended the rank all the same: the rank goes to another, and it is told why.
func TestARankThatIsDeletedAfterItsNodeTurnedItAway(t *testing.T) {
	const sign = "UnexpectedAdmissionError"
	for name, changes := range map[string][]func(*rqv1.RunSpec){"own": nil, "theirs": {ungrouped, theirs}} {
		for how, turnsAway := range map[string]func(*world, *corev1.Pod){
			"seen": func(w *world, pod *corev1.Pod) { w.Evict(pod.UID, sign) },
			"seen as it goes": func(w *world, pod *corev1.Pod) {
				failed := pod.DeepCopy()
				failed.Status.Phase, failed.Status.Reason = corev1.PodFailed, sign
				w.Pods[pod.UID] = failed
			},
			"seen, and what is to be told of it is not written at first": func(w *world, pod *corev1.Pod) {
				w.Faults.Add(sim.Fault{Of: sim.Statuses, Do: sim.Away})
				w.Evict(pod.UID, sign)
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				tell(t, func(w *world) {
					w.guarded(4, 2, 0, changes...)
					w.rounds(3)
					w.running("run0", "although its pods are there")
					pod := w.PodsOf("run0")[0]
					turnsAway(w, pod)
					w.DeletePod(pod.UID)
					w.settle()
					w.died("run0", 0, pod.Spec.NodeName, sign)
					w.expectLedger("run0", map[string]int{"Evicted": 1, "open Swap Active": 1, "open Start Active": 1})
					for _, is := range w.PodsOf("run0") {
						if is.Spec.NodeName == pod.Spec.NodeName {
							w.t.Fatalf("the rank is on %s again", pod.Spec.NodeName)
						}
					}
				})
			})
		}
	}
}
