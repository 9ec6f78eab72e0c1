package plugins

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

var (
	_ fwk.PreFilterPlugin  = &Jobtree{}
	_ fwk.FilterPlugin     = &Jobtree{}
	_ fwk.PostFilterPlugin = &Jobtree{}
)

// PreFilter gives a pod of a Run its one node. The first pod of a gang to come here plans the whole gang. Other pods
// may go where kube-scheduler's own rules have them go, unless they ask for GPUs.
func (pl *Jobtree) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod,
	_ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if asking(state) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if !ours(pod) {
		if refusal := pl.book.Foreign(pod); refusal != nil {
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, refusal.Message)
		}
		if pl.book.HoldsBeside() {
			return nil, nil
		}
		return nil, fwk.NewStatus(fwk.Skip)
	}
	start := pl.clock.Now()
	node, refusal := pl.place(ctx, pod, start)
	metrics.PlanSeconds.Observe(pl.clock.Since(start).Seconds())
	if refusal != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, refusal.Message)
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// PreFilterExtensions returns nil: a plan does not change while a pod's cycle looks at preemption.
func (pl *Jobtree) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter checks the assignment again, since a nominated node bypasses the result of PreFilter, and keeps pods from what
// spares hold beside their GPUs.
func (pl *Jobtree) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	name := node.Node().Name
	if ours(pod) && pl.book.Assigned(pod.UID) != name {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the gang's plan puts this pod on another node")
	}
	if !ours(pod) {
		if refusal := pl.book.Foreign(pod); refusal != nil {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, refusal.Message)
		}
	}
	if why := pl.book.Withheld(pod, name, freeOn(node)); why != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
	}
	return nil
}

// freeOn returns how much of a resource nobody has requested on a node: CPU in thousandths.
func freeOn(node fwk.NodeInfo) func(corev1.ResourceName) int64 {
	has, requested := node.GetAllocatable(), node.GetRequested()
	return func(name corev1.ResourceName) int64 {
		switch name {
		case corev1.ResourceCPU:
			return has.GetMilliCPU() - requested.GetMilliCPU()
		case corev1.ResourceMemory:
			return has.GetMemory() - requested.GetMemory()
		case corev1.ResourceEphemeralStorage:
			return has.GetEphemeralStorage() - requested.GetEphemeralStorage()
		}
		return has.GetScalarResources()[name] - requested.GetScalarResources()[name]
	}
}

// PostFilter tells the book when another scheduling rule turned the pod's node down. A refusal of our own becomes a
// promise there soon, which the Run's Reservation tells; when its date has come, it is decided who is cut for it.
func (pl *Jobtree) PostFilter(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod,
	nodes fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if ours(pod) {
		node := pl.book.Assigned(pod.UID)
		status := nodes.Get(node)
		switch {
		case node != "" && status != nil && (turnedDown(status) || status.Plugin() == ""):
			pl.rejected(pod, node, status)
		case status != nil && turnedDown(status):
			pl.book.Turned(pod.UID, node, status.Message())
		case node == "":
			pl.decide(ctx, pod, pl.clock.Now())
		}
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// rejected deals with a node that a plugin or an extender has turned down, or that no plugin has, since the scheduler's
// snapshot lacks it. One that the snapshot does not have as the book has it is tried again soon: no event of the
// queue's would, and whoever comes next would be given it meanwhile.
func (pl *Jobtree) rejected(pod *corev1.Pod, node string, status *fwk.Status) {
	why := status.Message()
	switch info, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(node); {
	case err != nil || info.Node() == nil:
		why = "the scheduler does not see the node"
	case pl.book.Knows(info.Node()):
		pl.book.Turned(pod.UID, node, why)
		return
	}
	if wait := pl.book.Unseen(pod.UID, node, why); wait > 0 {
		time.AfterFunc(wait, func() { pl.book.Again(pod.UID) })
	}
}

// turnedDown reports whether it was a node that was turned down, by any plugin: of our own the Filter says so, and
// PreFilter that the pod has no node yet.
func turnedDown(status *fwk.Status) bool {
	return status.Plugin() != "" && (status.Plugin() != Name || status.Code() == fwk.UnschedulableAndUnresolvable)
}
