package book

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// whyBarred says in kube-scheduler's words why a pod may not use a node by what both say; empty where it may.
func whyBarred(node *corev1.Node, pod *corev1.Pod) string {
	if taint, untolerated := untoleratedTaint(pod, node); untolerated {
		return "untolerated taint " + taint.ToString()
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); !ok || err != nil {
		return "it didn't match the pod's node affinity/selector"
	}
	return ""
}

// sayWhy adds to a refusal that names a node which a pod may not use what keeps the pod off it, if that is in what both
// say.
func (t *nodeTable) sayWhy(refusal *plan.Refusal, pod *corev1.Pod) {
	if node := t.byName[refusal.Excluded]; node != nil {
		if why := whyBarred(node, pod); why != "" {
			refusal.Because(why)
		}
	}
}
