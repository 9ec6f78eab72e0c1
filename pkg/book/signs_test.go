package book_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/suspicion"
)

// nodeSigns are what a node that is not lost may show for a while: each shows a sign on it, or takes it back.
var nodeSigns = map[string]func(node *corev1.Node, shown bool, now time.Time){
	"cordon": func(node *corev1.Node, shown bool, _ time.Time) { node.Spec.Unschedulable = shown },
	"drain": func(node *corev1.Node, shown bool, _ time.Time) {
		node.Status.Conditions = nil
		if shown {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDrainInProgress, Status: corev1.ConditionTrue}}
		}
	},
	"maintenance": func(node *corev1.Node, shown bool, now time.Time) {
		annotate(node, rqv1.AnnotationMaintenanceStart, now.UTC().Format(time.RFC3339), shown)
	},
	"suspect": func(node *corev1.Node, shown bool, now time.Time) {
		record, _ := suspicion.Record{}.With(suspicion.Mark{At: now, Why: suspicion.EndedRank})
		annotate(node, rqv1.AnnotationSuspect, record.String(), shown)
	},
	"devices": func(node *corev1.Node, shown bool, _ time.Time) {
		left := node.Status.Capacity["nvidia.com/gpu"]
		if shown {
			left = *resource.NewQuantity(0, resource.DecimalSI)
		}
		node.Status.Allocatable["nvidia.com/gpu"] = left
	},
}

// annotate sets an annotation of a node, or takes it off.
func annotate(node *corev1.Node, key, value string, is bool) {
	node.Annotations = maps.Clone(node.Annotations)
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if delete(node.Annotations, key); is {
		node.Annotations[key] = value
	}
}

// showAny has a node show a sign, or no more.
func (w *world) showAny(t *rapid.T) {
	name, ok := pick(t, "node", slices.Sorted(maps.Keys(w.Nodes)))
	if !ok || w.Lost(name) {
		return
	}
	w.show(name, rapid.SampledFrom(slices.Sorted(maps.Keys(nodeSigns))).Draw(t, "sign"), rapid.Bool().Draw(t, "shown"))
}

func (w *world) show(name, sign string, shown bool) {
	node := w.Nodes[name].DeepCopy()
	nodeSigns[sign](node, shown, w.Now)
	w.SetNode(node)
}

// breakAny has the kubelet of a pod say that a device of it is broken, or well again.
func (w *world) breakAny(t *rapid.T) {
	uid, ok := pick(t, "pod", w.SortedPods())
	if !ok || w.Pods[uid].Status.Phase != corev1.PodRunning {
		return
	}
	pod := w.Pods[uid].DeepCopy()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{AllocatedResourcesStatus: []corev1.ResourceStatus{{
		Name: "nvidia.com/gpu", Resources: []corev1.ResourceHealth{{ResourceID: "GPU-0", Health: rapid.SampledFrom(
			[]corev1.ResourceHealthStatus{corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusHealthy}).Draw(t,
			"health")}}}}}}
	w.SetPod(pod)
}

// allWell has no node show a sign any more.
func (w *world) allWell() {
	for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
		for _, sign := range slices.Sorted(maps.Keys(nodeSigns)) {
			if !w.Lost(name) {
				w.show(name, sign, false)
			}
		}
	}
}
