package audit

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

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

// alive reports whether a pod is there to stay: it has not ended and has not been told to.
func alive(pod *corev1.Pod) bool {
	if pod == nil || rank.Ended(pod) {
		return false
	}
	_, told := rank.GoesBy(pod)
	return !told
}

func isSpare(pod *corev1.Pod) bool { return pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) }

// ours reports whether our scheduler placed a pod.
func ours(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == rqv1.SchedulerName || pod.Labels[rqv1.LabelRun] != ""
}
