package plugins

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
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
		if why := pl.book.HoldsBack(pod); why != "" {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
		}
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

// EventsToRegister registers one event, for pods that no Run made: that one has got its rank. Of everything else the
// book knows which gang it may have unblocked, and activates that one alone.
func (pl *Jobtree) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.UpdatePodLabel},
		QueueingHintFn: func(_ klog.Logger, pod *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
			was, known := before.(*corev1.Pod)
			is, ok := after.(*corev1.Pod)
			if known && ok && is.UID == pod.UID && was.Labels[rqv1.LabelRun] != is.Labels[rqv1.LabelRun] {
				return fwk.Queue, nil
			}
			return fwk.QueueSkip, nil
		}}}, nil
}
