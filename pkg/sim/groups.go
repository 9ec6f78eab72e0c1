package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Groups is what makes the Runs that stand for pods which no Run made, in the process that decides.
type Groups interface {
	// SawPod and SawRun tell of an object that has come, changed or gone: was is nil for one that is new, and is for one
	// that is gone.
	SawPod(was, is *corev1.Pod)
	SawRun(was, is *rqv1.Run)
	// Offers returns the pods that a Run could give ranks to, and how its group has ended.
	Offers(run *rqv1.Run) ([]book.Offer, rqv1.RunPhase)
	// Look looks at those groups whose time has come, and reports whether there were any. Next is when there are others.
	Look() bool
	Next() (time.Time, bool)
}

// Write makes a write of somebody else's in the process, which counts, and fails, as all do.
func (c *Cluster) Write(kind Kind, object string, do func()) error { return c.write(kind, object, do) }

// LookAt has a Run be looked at.
func (c *Cluster) LookAt(run string) { c.changed[run] = true }

// sawPod has those know of a pod who make Runs for groups.
func (c *Cluster) sawPod(was, is *corev1.Pod) {
	if c.Groups != nil {
		c.Groups.SawPod(was, is)
	}
}

// sawRun has them know of a Run.
func (c *Cluster) sawRun(was, is *rqv1.Run) {
	if c.Groups != nil {
		c.Groups.SawRun(was, is)
	}
}

// unranked reports whether a pod that the scheduler is to place is no Run's, or none's yet.
func (c *Cluster) unranked(pod *corev1.Pod) bool {
	return c.Groups != nil && pod.Labels[rqv1.LabelRun] == "" && pod.Spec.SchedulerName == rqv1.SchedulerName
}

// place is the scheduling cycle of such a pod: it is held back, told why nobody places it, or put where it fits.
func (c *Cluster) place(pod *corev1.Pod) {
	if len(pod.Spec.SchedulingGates) > 0 || c.Book.HoldsBack(pod) != "" {
		return
	}
	if refusal := c.Book.Foreign(pod); refusal != nil {
		c.tellWhy(pod, refusal.Message)
		return
	}
	why := "0 nodes are available"
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		why = c.unfit(pod, name)
		if why == "" {
			c.start(pod.UID, name)
			return
		}
	}
	c.tellWhy(pod, why)
}

// unfit says why kube-scheduler's own rules do not put a pod without GPUs on a node; empty where they do.
func (c *Cluster) unfit(pod *corev1.Pod, name string) string {
	node := c.Nodes[name]
	for key, value := range pod.Spec.NodeSelector {
		if node.Labels[key] != value {
			return "node(s) didn't match Pod's node affinity/selector"
		}
	}
	if node.Spec.Unschedulable {
		return "node(s) were unschedulable"
	}
	if why := c.rejects(pod, name); why != "" {
		return why
	}
	return c.lacks(pod, name)
}

// start has a pod run on a node.
func (c *Cluster) start(uid types.UID, node string) {
	pod := c.Pods[uid].DeepCopy()
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	c.setReady(pod, c.Unready == nil || !c.Unready(pod))
	c.SetPod(pod)
}

// tellWhy has kube-scheduler say on a pod why it waits, if nobody has said so before.
func (c *Cluster) tellWhy(pod *corev1.Pod, why string) {
	if c.Groups == nil || pod.Labels[rqv1.LabelRun] != "" && !rank.Theirs(pod) {
		return
	}
	c.Tell(pod, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: why, LastTransitionTime: metav1.NewTime(c.Now)})
}

// Tell has a pod say why it waits, if it does not yet.
func (c *Cluster) Tell(pod *corev1.Pod, is corev1.PodCondition) {
	told := pod.DeepCopy()
	at := slices.IndexFunc(told.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == is.Type })
	switch {
	case at < 0:
		told.Status.Conditions = append(told.Status.Conditions, is)
	case told.Status.Conditions[at].Message == is.Message:
		return
	default:
		told.Status.Conditions[at] = is
	}
	c.SetPod(told)
}
