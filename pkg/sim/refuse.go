package sim

import corev1 "k8s.io/api/core/v1"

// Point is where in a pod's own way to its node another plugin may refuse it, as nobody could know before.
type Point int

// Points, in order. Plugins reserve, and do what comes before a pod is bound, in any order: also before ours, and after
// it.
const (
	AtFilter Point = iota
	BeforeReserve
	AfterReserve
	BeforeLease
	AfterLease
)

// refusedAt reports whether another plugin refuses a pod there.
func (c *Cluster) refusedAt(pod *corev1.Pod, node string, at Point) bool {
	return c.Refuses != nil && c.Refuses(pod, node, at)
}

// refuses has a pod that another plugin refuses take back what has been reserved for it, and be tried again. It reports
// whether one does.
func (c *Cluster) refuses(pod *corev1.Pod, node string, at Point) bool {
	if !c.refusedAt(pod, node, at) {
		return false
	}
	if c.Rejected != nil {
		c.Rejected(pod, node)
	}
	delete(c.Binding, pod.UID)
	c.Queue[pod.UID] = true // after a while
	c.Book.Unreserve(pod.UID, c.Now)
	return true
}
