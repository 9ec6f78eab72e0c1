package book

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// barred returns a test for the nodes that a pod may not use by what they and the pod say: taints that it does not
// tolerate, and node affinity that does not match. It returns nil when there is none.
func (t *nodeTable) barred(pod *corev1.Pod) func(node string) bool {
	bad := map[string]bool{}
	for name, node := range t.tainted {
		if !tolerates(pod, node) {
			bad[name] = true
		}
	}
	if len(pod.Spec.NodeSelector) > 0 || (pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil) {
		affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
		for name, node := range t.byName {
			if ok, err := affinity.Match(node); !ok || err != nil {
				bad[name] = true
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return func(node string) bool { return bad[node] }
}

// rejected returns a test for the nodes that a gang's pods may not use: those that they are barred from, and those that
// another scheduling rule has turned down. It returns nil when there is none, so that pack need not look at single
// nodes.
func (t *nodeTable) rejected(g *gang, pod *corev1.Pod) func(node string) bool {
	barred := t.barred(pod)
	if len(g.excluded) == 0 {
		return barred
	}
	bad := map[string]bool{}
	for name := range g.excluded {
		bad[name] = true
	}
	// One node was turned down for reasons of its own; those that are too small for the pod need not be tried one by one.
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for name, node := range t.byName {
		if tooSmall(node, requests) {
			bad[name] = true
		}
	}
	return func(node string) bool { return bad[node] || barred != nil && barred(node) }
}

func (t *nodeTable) accepts(g *gang, name string) bool {
	node := t.byName[name]
	return node != nil && t.serves(node) && g.excluded[name] == "" && tolerates(podOf(g.run), node)
}

// blame adds to a refusal for want of room which nodes other scheduling rules turned down. They are its reason only
// where the gang would fit if they had not: a fleet that is full is full, whatever else was found out about one of its
// nodes.
func (t *nodeTable) blame(g *gang, pod *corev1.Pod, refusal *plan.Refusal, fits func(rejected func(string) bool) bool) {
	if len(g.excluded) == 0 || !refusal.AboutRoom() {
		return
	}
	if fits(t.barred(pod)) {
		refusal.Reason = plan.NodesRejected
	}
	refusal.Without(g.rejection())
}

// unfitForSpares returns a test for the nodes that spares of a gang may not use: those that it may not use anyway, and
// those that turned its ranks down.
func (t *nodeTable) unfitForSpares(g *gang, rejected func(node string) bool) func(node string) bool {
	if len(g.spurned) == 0 {
		return rejected
	}
	return func(node string) bool { return g.spurned[node] || rejected != nil && rejected(node) }
}

// servedBy returns the nodes that serve a gang now.
func (t *nodeTable) servedBy(g *gang) map[string]serving {
	out, barred := map[string]serving{}, t.barred(podOf(g.run))
	for name, node := range t.byName {
		if t.flavorOf(node) == g.run.Spec.Resources.GPUType && t.serves(node) && (barred == nil || !barred(name)) {
			out[name] = serving{node.UID, t.gpusOf(node)}
		}
	}
	return out
}

// tolerates reports whether no taint of a node keeps a pod off it.
func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	_, untolerated := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints,
		pod.Spec.Tolerations, blocksScheduling, true)
	return !untolerated
}

// tooSmall reports whether a node could not hold a pod even if it were empty.
func tooSmall(node *corev1.Node, requests corev1.ResourceList) bool {
	for resource, want := range requests {
		if have := node.Status.Allocatable[resource]; have.Cmp(want) < 0 {
			return true
		}
	}
	return false
}

func blocksScheduling(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}
