package book_test

import (
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// unseen has pods be bound while the watch of Runs' pods hangs, for longer than a gang may be bound in part.
func (w *world) unseen(pass func(time.Duration)) {
	for _, name := range w.Live() {
		w.reconcile(name)
	}
	w.Act()
	for _, uid := range w.SortedPods() {
		w.cycle(uid)
	}
	w.Hang()
	for _, uid := range w.Bindings() {
		w.Bind(uid, sim.Written)
	}
	pass(gangDeadline + 2*time.Second)
	for _, name := range w.Live() {
		w.reconcile(name)
	}
	w.CatchUp()
}

// checkBound asserts that no pod goes for not being bound in time, without the API server being asked, that is bound.
func (w *world) checkBound(o lifecycle.Observed, d lifecycle.Decision) {
	if o.Run == nil || o.Run.Ended() || o.Run.DeletionTimestamp != nil || len(o.Cuts) > 0 || o.Run.Spec.Opportunistic {
		return
	}
	next := &o.Run.Status
	if d.Status != nil {
		next = d.Status
	}
	leased := map[string]bool{}
	for _, lease := range o.Leases {
		leased[string(lease.PodUID())] = true
	}
	for _, deletion := range d.Delete {
		pod, live := deletion.Pod, w.Pods[deletion.Pod.UID]
		if deletion.If != lifecycle.NoEvidence || pod.Spec.NodeName != "" || live == nil || live.Spec.NodeName == "" ||
			live.DeletionTimestamp != nil || !leased[string(pod.UID)] {
			continue
		}
		_, part, _ := rank.Membership(pod)
		overdue := next.Phase == rqv1.RunPending && strings.HasPrefix(next.Message, "not every pod")
		runs := o.Run.Status.Phase == rqv1.RunRunning && next.Phase == rqv1.RunRunning && next.Width != nil
		within := runs && !part.Spare && part.Index < int(next.Width.Granted)/o.Demand.GPUsPerPod
		if overdue || within {
			w.t.Fatalf("I12: pod %s goes for not being bound, and is bound to %s: %s", pod.Name, live.Spec.NodeName,
				next.Message)
		}
	}
}
