package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// attempts is how often it is decided in one cycle who is cut for a gang, without nodes that have turned its pods down.
const attempts = 8

// endless is more often than there can be another place to ask about.
const endless = 200

// Place has a pod's gang be planned by a book, on nodes that the rules of other schedulers accept if they are asked. It
// says false where they have not accepted any.
func (c *Cluster) Place(b *book.Book, uid types.UID) (node string, refusal *plan.Refusal, accepted bool) {
	run, _ := rank.RunOf(c.Pods[uid])
	accepted = true
	for round := 1; ; round++ {
		node, refusal = b.Place(uid, c.Now)
		check := b.Check(run, c.Now)
		if check == nil {
			return node, refusal, accepted
		}
		if round == endless {
			c.violated("rules are asked for ever about %s on %q: %v, %+v", c.Pods[uid].Name, node, refusal, check)
		}
		if c.interrupted(b, uid, check) {
			return node, refusal, false
		}
		turned, sure := c.judge(check)
		check.ArrangeAnew(turned, func(cleared bool) []string { return c.arrange(check, cleared) })
		c.meanwhile()
		accepted = sure && len(turned) == 0
		b.Conclude(check, turned, !sure, c.Now)
	}
}

// forecast has a pod's gang be promised a date, or be decided about, likewise.
func (c *Cluster) forecast(uid types.UID) {
	run, _ := rank.RunOf(c.Pods[uid])
	for round := 1; ; round++ {
		c.Book.Refused(uid, c.Now)
		c.Book.WorkOut(run, c.Now)
		check := c.Book.Check(run, c.Now)
		if check == nil {
			return
		}
		if c.interrupted(c.Book, uid, check) {
			return
		}
		turned, sure := c.judge(check)
		check.ArrangeAnew(turned, func(cleared bool) []string { return c.arrange(check, cleared) })
		c.meanwhile()
		accepted := sure && len(turned) == 0
		check.Unsure = !sure
		c.Book.Conclude(check, turned, check.Doubtful(turned) || !accepted && round == attempts, c.Now)
		if accepted {
			return
		}
	}
}

// interrupted has there be no time to ask about all places of a check for which others are cut, if so it is to be.
func (c *Cluster) interrupted(b *book.Book, uid types.UID, check *book.Check) bool {
	if !c.Hurried || !check.Cuts || check.Accepted+1 >= len(check.Places) {
		return false
	}
	first := *check
	first.Places = check.Places[:check.Accepted+1]
	turned, sure := c.judge(&first)
	if !sure {
		return false
	}
	c.meanwhile()
	b.Interrupt(check, turned, check.Accepted+1, c.Now)
	c.Queue[uid] = true
	return true
}

// meanwhile has happen, once, what is to happen while rules are asked.
func (c *Cluster) meanwhile() {
	if happen := c.Meanwhile; happen != nil {
		c.Meanwhile = nil
		happen()
	}
}

// judge returns the nodes that turn down what a gang has been given, and false if that could not be found out of one.
func (c *Cluster) judge(check *book.Check) (turned []book.Turning, sure bool) {
	c.Asked++
	sure = true
	leaves, accepted, coming := leaving(check), accepted{}, ""
	for _, place := range check.Places {
		why, skewed := c.rejects(place.Pod, place.Node), false
		switch {
		case !sure && !check.Seats:
			return turned, false
		case !sure || c.Unsure[place.Node]:
			why, sure = unknown, false
		}
		if why == "" {
			why, skewed = c.among(place.Pod, place.Node, leaves, accepted)
		}
		if why == "" {
			var beyond []book.Turning
			why, beyond = c.beyond(place.Pod, place.Node, coming, check)
			turned = append(turned, beyond...)
			if len(beyond) > 0 {
				return turned, sure
			}
		}
		if why == "" {
			accepted.add(place)
			coming = c.comesTo(place, coming, check)
			continue
		}
		turned = append(turned, book.Turning{Pod: place.Pod.UID, Node: place.Node, Why: why, Most: len(accepted[place.Node]),
			Skewed: skewed})
	}
	return turned, sure
}

// tolerates reports whether a pod tolerates a taint.
func tolerates(pod *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Background(), taint, true)
	})
}

// rejects says why a node turns a pod down whoever is there; empty when it does not. A spare asks for little.
func (c *Cluster) rejects(pod *corev1.Pod, node string) string {
	if n := c.Nodes[node]; n != nil {
		for i := range n.Spec.Taints {
			if !tolerates(pod, &n.Spec.Taints[i]) {
				return "node(s) had untolerated taint(s)"
			}
		}
	}
	if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) {
		return ""
	}
	if why := c.Rejects[node]; why != "" || c.Turns == nil {
		return why
	}
	return c.Turns(pod, node)
}

// among says why a node turns a pod down for the other pods of its Run, and whether that is for how many are on nodes
// like it: with those that leave gone, and so many accepted on each node.
func (c *Cluster) among(pod *corev1.Pod, node string, leaves map[types.UID]bool, accepted accepted) (why string,
	skewed bool) {
	switch {
	case c.beside(pod, node, leaves, len(accepted[node])):
		return "node(s) didn't match pod anti-affinity rules", false
	case c.skewed(pod, node, leaves, accepted):
		return "node(s) didn't match pod topology spread constraints", true
	}
	return "", false
}

// beside reports whether a pod that wants to be alone of its Run on a node is not: with those that leave gone, and some
// that come.
func (c *Cluster) beside(pod *corev1.Pod, node string, leaves map[types.UID]bool, coming int) bool {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return false
	}
	for _, other := range c.fellows(pod, leaves) {
		if c.on(other) == node {
			coming++
		}
	}
	return coming > 0
}

// fellows returns the other pods of a pod's Run that are on nodes, or are about to be, without some that leave.
func (c *Cluster) fellows(pod *corev1.Pod, leaves map[types.UID]bool) (out []*corev1.Pod) {
	for uid, other := range c.Pods {
		if uid != pod.UID && c.on(other) != "" && !rank.Ended(other) && !leaves[uid] &&
			other.Labels[rqv1.LabelRun] == pod.Labels[rqv1.LabelRun] {
			out = append(out, other)
		}
	}
	return out
}

// on returns the node that a pod is on, or is about to be; empty where it is on none.
func (c *Cluster) on(pod *corev1.Pod) string {
	if _, binds := c.Binding[pod.UID]; pod.Spec.NodeName == "" && (binds || c.Waiting.Has(pod.UID)) {
		return c.Book.Assigned(pod.UID)
	}
	return pod.Spec.NodeName
}

// unknown is what is told of a node of which it cannot be found out whether it accepts a pod.
const unknown = "nobody knows"
