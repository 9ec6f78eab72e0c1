package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Hang has the process's watch of its Runs' pods tell nothing until CatchUp. Its other watches go on, and so does that
// of the scheduling queue, of all pods.
func (c *Cluster) Hang() { c.hangs = true }

// WriteLate has the process's watch of Runs tell nothing of the statuses that it writes, until CatchUp. A Run of which
// it has written one is not looked at until then.
func (c *Cluster) WriteLate() { c.writesLate = true }

// CatchUp has these watches tell everything that has happened since they hung.
func (c *Cluster) CatchUp() {
	c.hangs, c.writesLate = false, false
	for _, name := range slices.Sorted(maps.Keys(c.lateRuns)) {
		c.SetRun(c.Runs[name])
	}
	for _, uid := range slices.Sorted(maps.Keys(c.untold)) {
		switch was, pod := c.untold[uid], c.Pods[uid]; {
		case pod != nil:
			c.tellPod(pod)
			c.Queue[uid] = c.Queue[uid] || pod.Spec.NodeName == ""
		case was != nil:
			c.tellGone(was)
		}
	}
	clear(c.untold)
}

// withhold notes how the process has a pod that changes, or comes, or goes, while the watch hangs; it reports whether
// it does.
func (c *Cluster) withhold(uid types.UID) bool {
	if _, noted := c.untold[uid]; c.hangs && !noted {
		c.untold[uid] = c.Pods[uid]
	}
	return c.hangs
}

// tellPod has the process see a pod as one of a Run.
func (c *Cluster) tellPod(pod *corev1.Pod) {
	c.changed[pod.Labels[rqv1.LabelRun]] = true
	c.Book.SetMember(pod)
}

// tellGone has it see that such a pod is gone.
func (c *Cluster) tellGone(pod *corev1.Pod) {
	c.changed[pod.Labels[rqv1.LabelRun]] = true
	c.Book.DeleteMember(pod)
}

// toldOf returns a Run's pods as the process has been told of them.
func (c *Cluster) toldOf(run string) []*corev1.Pod {
	if len(c.untold) == 0 {
		return c.PodsOf(run)
	}
	told := maps.Clone(c.untold)
	for _, pod := range c.PodsOf(run) {
		if _, late := told[pod.UID]; !late {
			told[pod.UID] = pod
		}
	}
	var out []*corev1.Pod
	for _, uid := range slices.Sorted(maps.Keys(told)) {
		if pod := told[uid]; pod != nil && pod.Labels[rqv1.LabelRun] == run {
			out = append(out, pod)
		}
	}
	return out
}

// named returns the pod of a name that came or changed while the watch hung; nil when there is none.
func (c *Cluster) named(name string) *corev1.Pod {
	for uid := range c.untold {
		if pod := c.Pods[uid]; pod != nil && pod.Name == name {
			return pod
		}
	}
	return nil
}
