package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Act carries out what the book asks of the queue and of the controllers.
func (c *Cluster) Act() {
	queue, controllers := c.Book.ToQueue().Take(), c.Book.Controllers().Take()
	for _, uid := range queue.Reject {
		c.Unreserve(uid)
	}
	for _, pod := range queue.Activate {
		c.enqueue(pod)
	}
	for _, run := range c.Book.Inquiries().Take() {
		if check := c.Book.CheckMoves(run); check != nil {
			turned, sure := c.judge(check)
			turned = slices.DeleteFunc(turned, func(t book.Turning) bool { return t.Why == unknown })
			c.meanwhile()
			c.Book.ConcludeMoves(check, turned, sure, c.Now)
		}
	}
	for _, run := range controllers.Reconcile {
		c.changed[run.Name] = true
	}
	for _, name := range controllers.Lookup {
		if lease := c.Leases[name.Name]; lease != nil {
			c.Book.SetLease(lease)
		} else {
			c.Book.LeaseLost(name, c.Now)
		}
	}
}

// Cycle is one scheduling cycle of a pod, if the queue tries it: one that was turned down, or let in and refused, is
// left alone until the book asks for it.
func (c *Cluster) Cycle(uid types.UID) {
	pod := c.Pods[uid]
	if !c.Queue[uid] {
		return
	}
	delete(c.Queue, uid)
	if pod == nil || c.Waiting.Has(uid) || c.Binding[uid] != "" || pod.Spec.NodeName != "" {
		return
	}
	if c.unranked(pod) {
		c.place(pod)
		return
	}
	if c.Book.Gate(pod) != "" {
		return
	}
	planned := c.Book.Assigned(uid) == ""
	node, refusal, _ := c.Place(c.Book, uid)
	if c.Pods[uid] == nil {
		return // it was deleted while rules were asked
	}
	if refusal != nil || c.Book.Assigned(uid) != node {
		if c.Book.Assigned(uid) == "" {
			c.forecast(uid)
		}
		if is := c.Pods[uid]; is != nil && refusal != nil {
			c.tellWhy(is, refusal.Message)
		}
		return
	}
	if planned {
		delete(c.surprised, uid)
	}
	why := c.turnsDown(pod, node)
	if why == "" && c.refusedAt(pod, node, AtFilter) {
		why = "another plugin refuses it"
	}
	if why != "" {
		if c.Rejected != nil {
			c.Rejected(pod, node)
		}
		c.Book.Turned(uid, node, why)
		return
	}
	if planned && c.Placed != nil {
		c.Placed(pod, node)
	}
	c.reserve(pod, node)
}

// reserve has a pod's place be confirmed, and its gang follow it to the barrier, unless another plugin refuses it.
func (c *Cluster) reserve(pod *corev1.Pod, node string) {
	uid := pod.UID
	if c.refuses(pod, node, BeforeReserve) {
		return
	}
	if err := c.Book.Reserve(uid, node); err != nil {
		c.violated("a pod placed in this cycle cannot be reserved: %v", err)
	}
	siblings := c.Book.Follow(uid)
	if c.refuses(pod, node, AfterReserve) {
		return // whom a cycle wakes that fails stays asleep
	}
	for _, sibling := range siblings {
		c.enqueue(sibling)
	}
	c.permit(uid, node)
}

// enqueue has the queue try a pod, unless it is turned down at its gate: it is left alone then until it is asked for
// again. One that is gone is not in the queue.
func (c *Cluster) enqueue(pod *corev1.Pod) {
	if c.Pods[pod.UID] != nil && (c.unranked(pod) || c.Book.Gate(pod) == "") {
		c.Queue[pod.UID] = true
	}
}

// permit has a pod arrive at the barrier of its gang.
func (c *Cluster) permit(uid types.UID, node string) {
	c.came[uid] = c.altered
	open, release, wait := c.Book.Arrive(uid, c.Now)
	switch {
	case !open && wait <= 0:
		c.Book.Unreserve(uid, c.Now)
	case !open:
		c.Waiting.Set(uid, c.Now.Add(wait))
	default:
		c.Binding[uid] = node
		for _, other := range release {
			if !c.Waiting.Has(other) {
				c.violated("the barrier releases a pod that is not there")
			}
			c.Waiting.Delete(other)
			c.Binding[other] = c.Book.Assigned(other)
		}
		c.checkSpread(append(release, uid))
	}
}

// Unreserve ends a pod's wait or its binding.
func (c *Cluster) Unreserve(uid types.UID) {
	_, binds := c.Binding[uid]
	waits := c.Waiting.Has(uid)
	c.Waiting.Delete(uid)
	delete(c.Binding, uid)
	if waits || binds {
		c.Queue[uid] = true // after a while
		c.Book.Unreserve(uid, c.Now)
	}
}

// Bindings returns the pods past the barrier, in order.
func (c *Cluster) Bindings() []types.UID { return slices.Sorted(maps.Keys(c.Binding)) }

// free returns those whose binding may come about, or their Leases: none that has its Lease while bindings are held.
func (c *Cluster) free() []types.UID {
	return slices.DeleteFunc(c.Bindings(), func(uid types.UID) bool {
		return c.Holds && c.Leases[rank.LeaseName(c.Pods[uid].Name, uid)] != nil
	})
}

// Bind writes a pod's Lease, with some outcome, and binds the pod.
func (c *Cluster) Bind(uid types.UID, how Effect) {
	if planned := c.Faults.at(Bindings); planned == Crash {
		panic(Crashed{})
	} else if planned != Written {
		how = planned
	}
	c.Writes++
	node, ok := c.Binding[uid]
	if !ok {
		return
	}
	if c.refuses(c.Pods[uid], node, BeforeLease) {
		return
	}
	lease, err := c.Book.NewLease(uid, c.Now)
	if err != nil {
		c.Unreserve(uid)
		return
	}
	if how == Refused && c.Leases[lease.Name] == nil {
		c.Book.NotWritten(uid, types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name})
		c.Unreserve(uid)
		return
	}
	if stored := c.Leases[lease.Name]; stored != nil {
		lease = stored
	} else {
		lease.UID = c.UID()
		c.storeLease(lease)
	}
	if how == Late {
		c.Unreserve(uid)
		c.Book.SetLease(lease)
		return
	}
	c.Book.SetLease(lease)
	if on := lease.Node(); on != node {
		c.violated("pod %s has its Lease on %s and is bound to %s", c.Pods[uid].Name, on, node)
	}
	if c.refuses(c.Pods[uid], node, AfterLease) {
		return
	}
	delete(c.Binding, uid)
	if c.Nodes[node] == nil {
		if slices.ContainsFunc(Machines(), func(m corev1.Node) bool { return m.Name == node }) {
			c.violated("pod %s is bound to %s, which nobody uses", c.Pods[uid].Name, node)
		}
		c.Queue[uid] = true
		return
	}
	c.bindClaim(c.Pods[uid], node)
	pod := c.Pods[uid].DeepCopy()
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	c.setReady(pod, !c.Slow && (c.Unready == nil || !c.Unready(pod)))
	if ranks := c.Book.Ranks(uid); ranks > 0 {
		pod.Annotations = maps.Clone(pod.Annotations)
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[rqv1.AnnotationWorldSize] = strconv.Itoa(ranks)
	}
	c.SetPod(pod)
}

// Pass lets time go by and ends waits that are over.
func (c *Cluster) Pass(d time.Duration) {
	c.Now = c.Now.Add(d)
	for _, run := range c.Retries.Due(c.Now) {
		c.Book.Retry(keyOf(run))
	}
	for _, run := range c.looks.Due(c.Now) {
		c.changed[run] = true
	}
	for uid, at, ok := c.Waiting.First(); ok && at.Before(c.Now); uid, at, ok = c.Waiting.First() {
		c.Unreserve(uid)
	}
}

// Jump sets all clocks forward or back, as somebody does who finds them wrong. What kubelets and timers count goes on
// as before.
func (c *Cluster) Jump(by time.Duration) {
	c.Now = c.Now.Add(by)
	c.Ends.Shift(by)
	c.Waiting.Shift(by)
	c.Retries.Shift(by)
	c.looks.Shift(by)
}
