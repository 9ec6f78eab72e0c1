package sim

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Lost reports whether a node does not exist or is recorded as lost.
func (c *Cluster) Lost(name string) bool {
	if c.Nodes[name] == nil {
		return true
	}
	_, lost := nodeloss.Recorded(c.Nodes[name])
	return lost
}

// Lose has nodes found to be lost, all at once, since their kubelets are silent.
func (c *Cluster) Lose(names ...string) {
	c.LoseFor(nodeloss.Verdict{Reason: nodeloss.Stale}, names...)
}

// LoseFor has nodes found to be lost by a verdict, as the controller does: they are cordoned with a record.
func (c *Cluster) LoseFor(why nodeloss.Verdict, names ...string) {
	c.Book.SetLosing(names, true)
	for _, name := range names {
		node := c.Nodes[name].DeepCopy()
		node.Spec.Unschedulable = true
		node.Annotations = maps.Clone(node.Annotations)
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[rqv1.AnnotationLost] = nodeloss.Record(why, c.Now)
		c.SetNode(node)
	}
}

// Forgive has a person uncordon a node.
func (c *Cluster) Forgive(name string) {
	node := c.Nodes[name].DeepCopy()
	node.Spec.Unschedulable = false
	c.SetNode(node)
	c.Revive(name)
}

// Revive has the kubelet of a node end what terminates there.
func (c *Cluster) Revive(node string) {
	for _, uid := range c.SortedPods() {
		if pod := c.Pods[uid]; pod.Spec.NodeName == node && pod.DeletionTimestamp != nil {
			c.DeletePod(uid)
		}
	}
}

// ForgetNode deletes a node. Pods that are on it stay until somebody deletes them.
func (c *Cluster) ForgetNode(name string) {
	delete(c.Nodes, name)
	c.altered++
	c.Book.RemoveNode(name)
}

// RemoveNode deletes a node and, as the pod garbage collector does, the pods on it.
func (c *Cluster) RemoveNode(name string) {
	c.ForgetNode(name)
	for _, uid := range c.SortedPods() {
		if c.Pods[uid].Spec.NodeName == name {
			c.DeletePod(uid)
		}
	}
}

// EndPod has a pod's containers end.
func (c *Cluster) EndPod(uid types.UID, phase corev1.PodPhase) {
	pod := c.Pods[uid].DeepCopy()
	pod.Status.Phase = phase
	c.SetPod(pod)
}

// Evict has a node end a pod, or turn it away, with a word of why.
func (c *Cluster) Evict(uid types.UID, reason string) {
	pod := c.Pods[uid].DeepCopy()
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, reason
	c.SetPod(pod)
}

// Guard returns the PodDisruptionBudget of a Run; nil when it has none.
func (c *Cluster) Guard(run string) *policyv1.PodDisruptionBudget { return c.guards[run] }

// AskToEvict has somebody ask that a pod be evicted, as kubectl drain does. It reports false when the
// PodDisruptionBudget of its Run does not let it go.
func (c *Cluster) AskToEvict(uid types.UID) bool {
	pod := c.Pods[uid]
	run := pod.Labels[rqv1.LabelRun]
	if guard := c.guards[run]; guard != nil && pod.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) {
		available := int32(0)
		for _, other := range c.PodsOf(run) {
			if other.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) && other.Spec.NodeName != "" &&
				other.DeletionTimestamp == nil && other.Status.Phase == corev1.PodRunning {
				available++
			}
		}
		if available <= guard.Spec.MinAvailable.IntVal {
			return false
		}
	}
	c.EvictByAPI(uid)
	return true
}

// EvictByAPI has the API server evict a pod which no PodDisruptionBudget keeps.
func (c *Cluster) EvictByAPI(uid types.UID) { c.evictAs(uid, "EvictionByEvictionAPI") }

// EvictByTaint has the controller of taints evict the pods of a node that do not tolerate one of effect NoExecute.
func (c *Cluster) EvictByTaint(node string, taint *corev1.Taint) {
	for _, uid := range c.SortedPods() {
		if pod := c.Pods[uid]; pod.Spec.NodeName == node && pod.DeletionTimestamp == nil && !tolerates(pod, taint) {
			c.evictAs(uid, "DeletionByTaintManager")
		}
	}
}

// evictAs has a pod be told to go, with a word of who does so.
func (c *Cluster) evictAs(uid types.UID, who string) {
	c.disrupt(uid, who, "")
	c.TerminateWithin(uid, nil)
}

// disrupt tells a pod, by its condition DisruptionTarget, that it is about to end, and why.
func (c *Cluster) disrupt(uid types.UID, reason, message string) {
	told := c.Pods[uid].DeepCopy()
	told.Status.Conditions = append(told.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget,
		Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(c.Now)})
	c.SetPod(told)
}

// DeleteRun deletes a Run and, as the garbage collector does, its pods.
func (c *Cluster) DeleteRun(name string) {
	c.ForgetRun(name)
	for _, pod := range c.PodsOf(name) {
		c.TerminateWithin(pod.UID, nil)
	}
}

// TerminateWithin deletes a pod with a grace period in seconds; nil for its own. On a lost node nobody is there to
// end it, and one that is not bound is gone at once.
func (c *Cluster) TerminateWithin(uid types.UID, seconds *int64) {
	pod := c.Pods[uid]
	if pod == nil {
		return
	}
	grace := graceOf(pod)
	if seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	switch node := pod.Spec.NodeName; {
	case node != "" && c.Lost(node):
		c.tellToGo(pod, c.Now)
	case node != "" && !c.AtOnce && grace > 0 && pod.Status.Phase == corev1.PodRunning:
		c.EndAt(pod, c.Now.Add(grace))
	default:
		c.DeletePod(uid)
	}
}

// deadlineExceeded is what a kubelet says of a pod whose activeDeadlineSeconds are over.
const deadlineExceeded = "DeadlineExceeded"

// EndInPlace has the kubelet of a pod end it, which is told by when that is to be, without its being deleted.
func (c *Cluster) EndInPlace(uid types.UID, by time.Time) {
	pod := c.Pods[uid].DeepCopy()
	if pod == nil {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	seconds := int64(rank.EndsNow)
	pod.Spec.ActiveDeadlineSeconds = &seconds
	pod.Annotations[rqv1.AnnotationEndsBy] = by.UTC().Format(time.RFC3339)
	c.SetPod(pod)
	if takes := c.takes(pod, graceOf(pod)); !c.AtOnce && takes > 0 {
		c.Ends.Set(uid, c.Now.Add(takes))
	} else {
		c.Evict(uid, deadlineExceeded)
	}
}

// endContainers has the kubelet of a pod that has been told to go say that its containers have ended, well or not:
// only then does it let go of the pod.
func (c *Cluster) endContainers(uid types.UID) {
	phase := corev1.PodFailed
	if _, _, theirs := MadeFor(c.Pods[uid]); !theirs && len(uid) > 7 && uid[7]%2 == 0 {
		phase = corev1.PodSucceeded // as that of a program that saves its work and exits
	}
	c.EndPod(uid, phase)
}

// graceOf returns the time that a pod takes to end once it is told to: none, unless it says so.
func graceOf(pod *corev1.Pod) time.Duration {
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return time.Duration(*own) * time.Second
	}
	return 0
}

// takes returns how long a pod takes to end that is given so much time to.
func (c *Cluster) takes(pod *corev1.Pod, grace time.Duration) time.Duration {
	if c.Takes != nil {
		return c.Takes(pod)
	}
	return grace
}

// EndAt tells a pod to go by an instant, or sooner than it was told before.
func (c *Cluster) EndAt(pod *corev1.Pod, at time.Time) {
	ends := c.Now.Add(c.takes(pod, at.Sub(c.Now)))
	if was := c.Ends.At(pod.UID); was.IsZero() || ends.Before(was) {
		c.Ends.Set(pod.UID, ends)
	}
	c.tellToGo(pod, at)
}

// tellToGo has the API server note by when a pod is to be gone, unless it has been told before.
func (c *Cluster) tellToGo(pod *corev1.Pod, by time.Time) {
	if pod.DeletionTimestamp == nil {
		pod = pod.DeepCopy()
		grace := int64(by.Sub(c.Now) / time.Second)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: by}, &grace
		c.SetPod(pod)
	}
}

// EndPods has pods go whose time is over. Their kubelets say first that their containers have ended, so that they go
// the next time.
func (c *Cluster) EndPods() {
	for _, uid := range c.Ends.Due(c.Now) {
		switch pod := c.Pods[uid]; {
		case pod == nil || c.Lost(pod.Spec.NodeName):
		case pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil:
			c.Evict(uid, deadlineExceeded)
		case pod.Status.Phase == corev1.PodRunning && !c.Prompt:
			c.endContainers(uid)
			c.Ends.Set(uid, c.Now)
		default:
			c.DeletePod(uid)
		}
	}
}
