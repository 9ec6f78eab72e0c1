package plugins

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	fwk "k8s.io/kube-scheduler/framework"
)

var (
	_ fwk.ReservePlugin = &Jobtree{}
	_ fwk.PermitPlugin  = &Jobtree{}
)

// Reserve confirms a pod's assignment. Once the leader is through, its gang follows: their nodes are taken in the book
// already.
func (pl *Jobtree) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !ours(pod) || asking(state) {
		return nil
	}
	if err := pl.book.Reserve(pod.UID, node); err != nil {
		return fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	siblings := pl.book.Follow(pod.UID)
	if len(siblings) == 0 {
		return nil
	}
	if data, err := state.Read(framework.PodsToActivateKey); err == nil {
		activate := data.(*framework.PodsToActivate)
		activate.Lock()
		defer activate.Unlock()
		for _, sibling := range siblings {
			activate.Map[sibling.Namespace+"/"+sibling.Name] = sibling
		}
	}
	return nil
}

// Unreserve takes a pod's reservation back; before the barrier opens that unwinds its gang.
func (pl *Jobtree) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	if ours(pod) && !asking(state) {
		pl.book.Unreserve(pod.UID, pl.clock.Now())
	}
}

// Permit is the gang barrier: pods wait here until the last of their gang arrives, or until the gang's deadline.
func (pl *Jobtree) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	if !ours(pod) {
		return nil, 0
	}
	open, release, wait := pl.book.Arrive(pod.UID, pl.clock.Now())
	if !open {
		if wait <= 0 {
			return fwk.NewStatus(fwk.Unschedulable, "the gang's deadline has passed"), 0
		}
		return fwk.NewStatus(fwk.Wait, "waiting for the rest of the gang"), wait
	}
	for _, uid := range release {
		if waiting := pl.handle.GetWaitingPod(uid); waiting != nil {
			waiting.Allow(Name)
		}
	}
	return nil, 0
}
