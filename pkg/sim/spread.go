package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

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
		on, reaches := map[string]int{}, labels.SelectorFromSet(pod.Spec.NodeSelector) // by the label's value
		counts, _ := metav1.LabelSelectorAsSelector(rule.LabelSelector)
		for _, other := range c.Nodes {
			if value, has := other.Labels[rule.TopologyKey]; has && reaches.Matches(labels.Set(other.Labels)) {
				on[value] += accepted.like(other.Name, counts)
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
