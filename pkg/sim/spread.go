package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// leaving returns the pods that are gone by the time that a check is about.
func leaving(check *book.Check) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, pods := range check.Leaving {
		for _, uid := range pods {
			out[uid] = true
		}
	}
	return out
}

// skewed reports whether a pod that must be spread over nodes like its Run's others may not be on a node: with those
// that leave gone, and so many accepted on each node.
func (c *Cluster) skewed(pod *corev1.Pod, node string, leaves map[types.UID]bool, accepted accepted) bool {
	for _, rule := range pod.Spec.TopologySpreadConstraints {
		if rule.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		on, counts := c.domainsOf(pod, rule.TopologyKey), counted(&rule) // by the label's value
		for _, other := range c.Nodes {
			if _, has := on[other.Labels[rule.TopologyKey]]; has {
				on[other.Labels[rule.TopologyKey]] += accepted.like(other.Name, counts)
			}
		}
		for _, other := range c.fellows(pod, leaves) {
			value := c.valueOn(c.on(other), rule.TopologyKey)
			if value != "" && counts.Matches(labels.Set(other.Labels)) {
				on[value]++
			}
		}
		value := c.valueOn(node, rule.TopologyKey)
		if value == "" || on[value]+1-slices.Min(slices.Collect(maps.Values(on))) > int(rule.MaxSkew) {
			return true
		}
	}
	return false
}

// accepted are the pods of a gang that nodes have accepted.
type accepted map[string][]*corev1.Pod

func (a accepted) add(place book.Place) { a[place.Node] = append(a[place.Node], place.Pod) }

// like returns how many on a node have some labels.
func (a accepted) like(node string, selector labels.Selector) (count int) {
	for _, pod := range a[node] {
		if selector.Matches(labels.Set(pod.Labels)) {
			count++
		}
	}
	return count
}

// valueOn returns the value of a node's label.
func (c *Cluster) valueOn(node, key string) string {
	if n := c.Nodes[node]; n != nil {
		return n.Labels[key]
	}
	return ""
}

// arrange finds other nodes for the pods of a check that are to be spread; nil where there are none.
func (c *Cluster) arrange(check *book.Check, clear bool) []string {
	for _, manner := range book.Manners {
		if nodes := c.arrangeBy(check, manner, clear); nodes != nil {
			return nodes
		}
	}
	return nil
}

func (c *Cluster) arrangeBy(check *book.Check, manner book.Manner, clear bool) []string {
	leaves, accepted := leaving(check), accepted{}
	return check.Arrange(manner, clear, func(place book.Place) book.Verdict {
		why, skewed := c.among(place.Pod, place.Node, leaves, accepted)
		switch {
		case c.Unlaid:
			return book.Unknown
		case c.rejects(place.Pod, place.Node) != "", why != "" && !skewed:
			return book.Refused
		case skewed:
			return book.Skewed
		}
		accepted.add(place)
		return book.Accepted
	})
}

// checkSpread asserts of pods that the barrier of their gang lets through together, if those are the first of their Run
// that do, that they are spread as their rules say, unless the nodes have become others since they came.
func (c *Cluster) checkSpread(let []types.UID) {
	first := c.Pods[let[0]]
	run := c.Runs[first.Labels[rqv1.LabelRun]]
	bound := func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }
	if run == nil || run.Status.Phase != rqv1.RunPending || slices.ContainsFunc(c.fellows(first, nil), bound) ||
		slices.ContainsFunc(let, func(uid types.UID) bool { return c.came[uid] != c.altered }) {
		return
	}
	for _, uid := range let {
		pod := c.Pods[uid]
		for _, rule := range pod.Spec.TopologySpreadConstraints {
			if rule.WhenUnsatisfiable != corev1.DoNotSchedule {
				continue
			}
			on, counts := c.domainsOf(pod, rule.TopologyKey), counted(&rule)
			for _, other := range let {
				if of := c.Pods[other]; of.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) &&
					counts.Matches(labels.Set(of.Labels)) {
					on[c.valueOn(c.on(of), rule.TopologyKey)]++
				}
			}
			all := slices.Sorted(maps.Values(on))
			if all[len(all)-1]-all[0] > int(rule.MaxSkew) {
				c.violated("R31: %s starts with %v pods by %s, whose skew may be %d", run.Name, on, rule.TopologyKey,
					rule.MaxSkew)
			}
		}
	}
}

// domainsOf returns the values of a label of the nodes that a pod's selector allows, each with no pods.
func (c *Cluster) domainsOf(pod *corev1.Pod, key string) map[string]int {
	on, reaches := map[string]int{}, labels.SelectorFromSet(pod.Spec.NodeSelector)
	for _, node := range c.Nodes {
		if value, has := node.Labels[key]; has && reaches.Matches(labels.Set(node.Labels)) {
			on[value] = 0
		}
	}
	return on
}

// counted is which pods a rule counts.
func counted(rule *corev1.TopologySpreadConstraint) labels.Selector {
	counts, _ := metav1.LabelSelectorAsSelector(rule.LabelSelector)
	return counts
}
