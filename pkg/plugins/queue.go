package plugins

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

var (
	_ fwk.PreEnqueuePlugin  = &Jobtree{}
	_ fwk.QueueSortPlugin   = &Jobtree{}
	_ fwk.EnqueueExtensions = &Jobtree{}
)

// PreEnqueue holds a gang's pods back while the gang has no plan, all but the leader, so that a waiting gang costs
// nothing.
func (pl *Jobtree) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if !ours(pod) {
		return nil
	}
	if why := pl.book.Gate(pod); why != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
	}
	return nil
}

// Less sorts pods by the places of their Runs in the queue, keeps each gang together and in order of rank.
func (pl *Jobtree) Less(x, y fwk.QueuedEntityInfo) bool {
	a, b := podOf(x), podOf(y)
	if a == nil || b == nil {
		return x.GetTimestamp().Before(y.GetTimestamp())
	}
	return pl.book.Less(a, b)
}

// podOf returns the pod of a queue entry; nil for an upstream pod group, which is none of ours.
func podOf(entity fwk.QueuedEntityInfo) *corev1.Pod {
	if info, ok := entity.(interface{ GetPodInfo() fwk.PodInfo }); ok {
		return info.GetPodInfo().GetPod()
	}
	return nil
}

// EventsToRegister registers no event: the book knows which gang an event may have unblocked, and activates that one
// alone.
func (pl *Jobtree) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}
