package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// remake deletes a pod of a Run and makes it again, with a record that it claims to be.
func (w *world) remake(name, record string) {
	old := w.Pods[w.pod(name)]
	w.DeletePod(old.UID)
	pod := old.DeepCopy()
	pod.UID, pod.Spec.NodeName, pod.Status = w.UID(), "", corev1.PodStatus{}
	pod.Annotations = map[string]string{rqv1.AnnotationReplaces: record}
	w.SetPod(pod)
}

// paidFor returns who pays for the open Lease of a pod, and where it is.
func (w *world) paidFor(name string) (budget, node string) {
	for _, lease := range w.OpenLeases() {
		if lease.Spec.RunRef.Name+"-"+lease.Labels[rqv1.LabelIndex] == name && lease.Spec.Slice.Role == rqv1.RoleActive {
			return lease.Spec.Payer.Budget, lease.Node()
		}
	}
	return "", ""
}

// A pod that says that it takes somebody's place gets no place and no payer by that: the ledger knows better.
func TestAForgedRecordGivesNothing(t *testing.T) {
	for name, record := range map[string]string{
		"nobody's pod": `{"spareUID":"zz","node":"n1","budget":"b","envelope":"e","relation":"own"}`,
		"as if its rank was lost": `{"lost":"n0","spare":"run0-s0","spareUID":"zz","node":"n1",` +
			`"budget":"b","envelope":"e","relation":"own"}`,
		"a pod that is no Run's": `{"spareUID":"foreign","node":"n2","budget":"b","envelope":"e","relation":"own"}`,
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(3, 1, 0)
				foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "foreign", UID: "foreign"}}
				foreign.Spec.NodeName = "n2"
				foreign.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(4, resource.DecimalSI)}}}}
				w.Book.SetPod(foreign)
				w.remake("run0-0", record)
				w.settle()
				w.running("run0", "although its rank has room")
				if budget, node := w.paidFor("run0-0"); budget != "a" || node != "n0" {
					w.t.Fatalf("the rank is on %s, paid by %q", node, budget)
				}
				// n2 has 4 GPUs left beside the foreign pod.
				w.submit("run1", "org:b", 1, 1, 8)
				w.submit("run2", "org:b", 1, 1, 8)
				w.settle()
				if phase := w.Runs["run2"].Status.Phase; phase != rqv1.RunPending {
					w.t.Fatalf("run2 is %s on GPUs of a foreign pod", phase)
				}
			})
		})
	}
}

// The record names a spare of the Run, but the rank's money is what the ledger says.
func TestAReplacementIsPaidForAsTheLedgerSays(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 1, 1)
		spare := w.Pods[w.pod("run0-s0")]
		w.remake("run0-0", `{"spare":"run0-s0","spareUID":"`+string(spare.UID)+`","node":"`+spare.Spec.NodeName+
			`","budget":"b","envelope":"e","relation":"own"}`)
		w.settle()
		w.running("run0", "although it has a spare")
		if budget, node := w.paidFor("run0-0"); budget != "a" || node != spare.Spec.NodeName {
			w.t.Fatalf("the rank is on %s, paid by %q", node, budget)
		}
	})
}
