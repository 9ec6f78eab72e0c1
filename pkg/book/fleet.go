package book

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// SetNode adds or replaces a node and wakes the gangs that wait for room of its flavor.
func (b *Book) SetNode(node *corev1.Node) {
	b.mu.Lock()
	defer b.unlock()
	flavor, gpus := b.flavorOf(node), b.gpusOf(node)
	if old := b.nodes[node.Name]; old != nil && b.gpusOf(old) == gpus && maps.Equal(old.Labels, node.Labels) &&
		equality.Semantic.DeepEqual(old.Spec, node.Spec) && old.Annotations[rqv1.AnnotationLost] == node.Annotations[rqv1.AnnotationLost] &&
		b.evident(old) == b.evident(node) {
		b.nodes[node.Name] = node // a heartbeat: nothing that decisions read has changed
		return
	}
	_, was := b.lossOf(node.Name)
	stood := b.stands(node.Name)
	b.forgetNode(node.Name)
	b.nodes[node.Name] = node
	b.accounts.SetNode(node.Name, flavor, node.Labels)
	if _, lost := nodeloss.Recorded(node); lost {
		delete(b.losing, node.Name) // the record tells from now on
	}
	if gpus > 0 {
		if b.sizes[flavor] == nil {
			b.sizes[flavor] = map[int]int{}
		}
		b.sizes[flavor][gpus]++
	}
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].Effect != corev1.TaintEffectPreferNoSchedule {
			b.tainted[node.Name] = node
		}
	}
	domain := b.fleet.DomainOf(node.Name)
	b.fleet.SetNode(b.inFleet(node))
	b.stray(node.Name, domain)
	b.wakeNodes(flavor)
	if _, is := b.lossOf(node.Name); is != was || stood != b.stands(node.Name) {
		b.reconcileOn(map[string]bool{node.Name: true})
	}
}

// RemoveNode forgets a node. What is held on it stays held until its pods and Leases are gone.
func (b *Book) RemoveNode(name string) {
	b.mu.Lock()
	defer b.unlock()
	b.forgetNode(name)
	delete(b.losing, name)
	delete(b.strayed, name)
	b.fleet.RemoveNode(name)
	b.reconcileOn(map[string]bool{name: true})
}

func (b *Book) forgetNode(name string) {
	old := b.nodes[name]
	if old == nil {
		return
	}
	if gpus := b.gpusOf(old); gpus > 0 {
		b.sizes[b.flavorOf(old)][gpus]--
	}
	delete(b.nodes, name)
	b.accounts.DeleteNode(name)
	delete(b.tainted, name)
}

func (b *Book) flavorOf(node *corev1.Node) string {
	value := node.Labels[b.args.FlavorLabel]
	if value == "" {
		return ""
	}
	return b.args.FlavorOf(value)
}

func (b *Book) gpusOf(node *corev1.Node) int {
	quantity := node.Status.Allocatable[corev1.ResourceName(b.args.GPUResource)]
	return int(quantity.Value())
}

// largestNode returns the number of GPUs of the largest node of a flavor; 0 when there is none.
func (b *Book) largestNode(flavor string) int {
	largest := 0
	for gpus, nodes := range b.sizes[flavor] {
		if nodes > 0 {
			largest = max(largest, gpus)
		}
	}
	return largest
}

// gpusOfAll returns the number of GPUs of all nodes of a flavor together.
func (b *Book) gpusOfAll(flavor string) int {
	total := 0
	for gpus, nodes := range b.sizes[flavor] {
		total += gpus * nodes
	}
	return total
}

// rejected returns a test for the nodes that a gang's pods may not use: those that they are barred from, and those that
// another scheduling rule has turned down. It returns nil when there is none, so that pack need not look at single nodes.
func (b *Book) rejected(g *gang, pod *corev1.Pod) func(node string) bool {
	barred := b.barred(pod)
	if len(g.excluded) == 0 {
		return barred
	}
	bad := map[string]bool{}
	for name := range g.excluded {
		bad[name] = true
	}
	// One node was turned down for reasons of its own; those that are too small for the pod need not be tried one by one.
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for name, node := range b.nodes {
		if tooSmall(node, requests) {
			bad[name] = true
		}
	}
	return func(node string) bool { return bad[node] || barred != nil && barred(node) }
}

// barred returns a test for the nodes that a pod may not use by what they and the pod say: taints that it does not tolerate,
// and node affinity that does not match. It returns nil when there is none.
func (b *Book) barred(pod *corev1.Pod) func(node string) bool {
	bad := map[string]bool{}
	for name, node := range b.tainted {
		if !tolerates(pod, node) {
			bad[name] = true
		}
	}
	if len(pod.Spec.NodeSelector) > 0 || (pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil) {
		affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
		for name, node := range b.nodes {
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

// tolerates reports whether no taint of a node keeps a pod off it.
func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	_, untolerated := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, blocksScheduling, true)
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

// holding is what one pod takes from a node, and who says so. The GPUs are free again once nobody does: a planned pod may
// be given up, a bound one holds until it is gone (R28), and an open Lease holds until it is closed (I1).
type holding struct {
	node string
	gpus int
	// planned by a gang's plan; writing, leased: in the ledger, perhaps or certainly; bound: the pod is there; vacant: kept
	// for the pod's replacement.
	planned, writing, leased, bound, vacant bool
	// spare says that it is a spare's, and shard an opportunistic Run's: others run on the one, and are not kept from the other.
	spare, shard bool
	// until is when the pod's grace period is over, once it has been told to go; asked is when a pod that gangs wait for, and that
	// has not been told, was first seen; stays says that it is a shard that does not go.
	until, asked time.Time
	stays        bool
	// run is the Run of a spare, and of a rank that takes one's place. The latter is seated until kube-scheduler counts it.
	run    types.UID
	seated bool
	// awaitedBy are the gangs that wait for the GPUs.
	awaitedBy []*gang
}

// unbind notes that the pod is there no more.
func (h *holding) unbind() { h.bound, h.planned, h.until = false, false, time.Time{} }

func (h *holding) claimed() bool { return h.planned || h.writing || h.leased || h.bound || h.vacant }

// hold changes the holding of a pod and keeps the fleet's counters in step.
func (b *Book) hold(pod types.UID, node string, gpus int, change func(h *holding)) {
	h := b.held[pod]
	if h == nil {
		h = &holding{}
	}
	before := *h
	change(h)
	if h.claimed() {
		if node != "" {
			h.node, h.gpus = node, gpus
		}
		b.held[pod] = h
	} else {
		delete(b.held, pod)
		delete(b.leavers, pod)
		h.gpus = 0
		b.gone(h)
	}
	b.holdsBeside(pod, h)
	if before.node == h.node && before.gpus == h.gpus && before.idles() == h.idles() && before.shard == h.shard {
		return
	}
	b.occupy(&before, pod, -before.gpus)
	b.occupy(h, pod, h.gpus)
	if before.gpus > h.gpus && !h.shard {
		b.wakeRoom(b.nodeFlavor(before.node))
	}
}

func (b *Book) nodeFlavor(name string) string {
	if node := b.nodes[name]; node != nil {
		return b.flavorOf(node)
	}
	return ""
}

// SetPod records what a pod, ours or foreign, takes from the node that it is bound to.
func (b *Book) SetPod(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.unlock()
	gpus := b.podGPUs(pod)
	if pod.Spec.NodeName == "" || gpus == 0 {
		return
	}
	if terminal(pod) {
		b.hold(pod.UID, "", 0, (*holding).unbind)
		return
	}
	b.hold(pod.UID, pod.Spec.NodeName, gpus, func(h *holding) {
		h.bound, h.shard = true, pod.Labels[rqv1.LabelRole] == string(rqv1.RoleBorrowed) && !h.stays
		b.told(h, pod)
	})
}

// DeletePod records that a pod is gone.
func (b *Book) DeletePod(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.unlock()
	b.forgetWithheld(pod.UID)
	b.hold(pod.UID, "", 0, (*holding).unbind)
}

// podGPUs returns the GPUs that a pod requests: as PodGPUs counts them.
func (b *Book) podGPUs(pod *corev1.Pod) int {
	return rank.PodGPUs(&pod.Spec, b.args.GPUResource)
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
