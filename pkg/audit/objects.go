package audit

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// remedies say what to do about a violation.
var remedies = map[Invariant]string{
	"I1": "See who holds the node with `kubectl runs leases -A --open`, and delete the Run that started there last.",
	"I2": "If the scheduler runs, it deletes such pods and closes such GPU leases within seconds: see its log. Delete " +
		"the pod to have it done.",
	"I3": "See `kubectl runs budgets usage`; nothing is stopped for it. Report it with the Budget and its " +
		"open GPU leases.",
	"I4": "The API server refuses such a change: find out who switched the CustomResourceDefinition's rules off, and " +
		"restore the object from a backup.",
	"I5": "Delete the pods that are left; their GPU leases close by themselves while the scheduler runs.",
	"I6": "If the labels of nodes were changed after the group had started, change them back; else delete one of its " +
		"pods, or the Run.",
	"I7": "See `kubectl runs explain` and the scheduler's log: nothing is replacing what the Run has lost.",
	"I8": "Restart the scheduler, which adds everything up anew from the GPU leases. If it stays, report it with the " +
		"Budget, its record and its GPU leases.",
	"I9":  "If the scheduler runs, it takes such a gang back: see its log. Delete the Run's pods to have it done.",
	"I10": "See the Reservation, and the scheduler's log at the time of its activation.",
	"I11": "Delete the pod, and give its GPUs to a Run.",
	"I12": "The pod holds GPUs that nobody pays for: delete it. Report what the scheduler's log says of its GPU lease.",
	"R21": "Check it with `kubectl runs explain --verify`, and find out who has written the Reservation.",
}

func nameOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func object(kind string, o metav1.Object) Object {
	return Object{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func aboutPod(pod *corev1.Pod, leases ...*rqv1.Lease) []Object {
	return append([]Object{object("Pod", pod)}, leaseObjects(leases)...)
}

func leaseObjects(leases []*rqv1.Lease) []Object {
	var out []Object
	for _, lease := range leases {
		out = append(out, object("Lease", lease))
	}
	return out
}

func chargeOf(lease *rqv1.Lease) budget.Charge { return book.ChargeIn(lease) }

// ownedBy reports whether a pod that carries a Run's name is the Run's, and not that of an earlier one of the same
// name.
func ownedBy(pod *corev1.Pod, run *rqv1.Run) bool {
	made, ok := rank.RunOf(pod)
	return !ok || made == run.UID
}

// over reports whether a pod has ended: it holds nothing any more.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// alive reports whether a pod is there to stay: it has not ended and has not been told to.
func alive(pod *corev1.Pod) bool { return pod != nil && !over(pod) && pod.DeletionTimestamp == nil }

func isSpare(pod *corev1.Pod) bool { return pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) }

func (s *sight) gpus(pod *corev1.Pod) int { return rank.PodGPUs(&pod.Spec, s.GPUResource) }
