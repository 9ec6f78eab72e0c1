package book

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// SetPod records what a pod, ours or foreign, takes from the node that it is bound to.
func (b *Book) SetPod(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gpus := b.nodes.podGPUs(pod)
	if pod.Spec.NodeName == "" {
		return
	}
	_, _, ours := rank.Membership(pod) // placed by this scheduler, when its place was free
	b.seats.untaken.note(pod.Spec.NodeName, pod.UID, !ours && !rank.Taken(pod))
	switch {
	case gpus == 0 && rank.Ended(pod):
		b.seats.dropBystander(pod.UID)
		return
	case gpus == 0:
		b.seats.setBystander(pod)
		return
	case rank.Ended(pod):
		b.seats.hold(pod.UID, "", 0, func(h *holding) { h.ends(pod) })
		return
	}
	b.seats.hold(pod.UID, pod.Spec.NodeName, gpus, func(h *holding) {
		if b.roster.members[pod.UID] == nil {
			h.beside = b.nodes.kinds.besideGPUs(pod)
		}
		h.bound, h.shard = true, pod.Labels[rqv1.LabelRole] == string(rqv1.RoleBorrowed) && !h.stays
		b.seats.told(h, pod)
		if pod.DeletionTimestamp != nil {
			h.left = pod
		}
	})
}

// DeletePod records that a pod is gone.
func (b *Book) DeletePod(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.roster.early, pod.UID) // it may have come and gone before it was known
	b.seats.forgetWithheld(pod.UID)
	b.seats.untaken.note(pod.Spec.NodeName, pod.UID, false)
	b.seats.dropBystander(pod.UID)
	b.seats.hold(pod.UID, "", 0, func(h *holding) {
		if rank.Ended(pod) {
			h.ends(pod)
			return
		}
		h.left = pod
		h.unbind()
	})
}

// ends notes that a pod has ended. Who has done so before being told to go went for nobody's sake, but for its node's,
// or since it was done.
func (h *holding) ends(pod *corev1.Pod) {
	e, failed := ending.Of(pod)
	if failed && e.Cause == rqv1.CauseNode || h.left == nil && pod.Status.Phase == corev1.PodSucceeded {
		h.left = pod
	}
	h.unbind()
}

// HoldsBeside reports whether spares hold anything beside GPUs.
func (b *Book) HoldsBeside() bool {
	b.seats.beside.mu.RLock()
	defer b.seats.beside.mu.RUnlock()
	return len(b.seats.beside.nodes) > 0
}

// Withheld says why a pod may not go to a node although the node has what it asks for: spares hold that for their
// ranks. Free returns how much of a resource nobody has requested there. Shards are not kept from it: they give way
// with the GPUs that they run on. A spare needs room for its rank.
func (b *Book) Withheld(pod *corev1.Pod, node string, free func(corev1.ResourceName) int64) string {
	if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleBorrowed) {
		return ""
	}
	b.seats.beside.mu.RLock()
	own, holds := b.seats.beside.pods[pod.UID]
	on := b.seats.beside.nodes[node]
	if on == nil {
		b.seats.beside.mu.RUnlock()
		return ""
	}
	held, run := maps.Clone(on.total), ""
	for name := range on.runs {
		if run == "" || name.String() < run {
			run = name.String()
		}
	}
	b.seats.beside.mu.RUnlock()
	asks := own.amounts
	if !holds {
		asks = b.seats.requestsOf(pod)
	} else if own.node == node {
		for resource, n := range own.amounts {
			held[resource] -= n
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(asks)) {
		if left := free(resource); asks[resource]+held[resource] > left && (held[resource] > 0 || holds) {
			if pod.Labels[rqv1.LabelRun] == "" {
				b.seats.withhold(pod)
			}
			return fmt.Sprintf("%s is held by spares of Run %s for their ranks: %s requested, %s held, %s free", resource, run,
				said(resource, asks[resource]), said(resource, held[resource]), said(resource, left))
		}
	}
	return ""
}
