package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
func (c *Cluster) skewed(pod *corev1.Pod, node string, leaves map[types.UID]bool, accepted map[string]int) bool {
	for _, rule := range pod.Spec.TopologySpreadConstraints {
		if rule.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		on, reaches := map[string]int{}, labels.SelectorFromSet(pod.Spec.NodeSelector) // by the label's value
		for _, other := range c.Nodes {
			if value, has := other.Labels[rule.TopologyKey]; has && reaches.Matches(labels.Set(other.Labels)) {
				on[value] += accepted[other.Name]
			}
		}
		for _, other := range c.fellows(pod, leaves) {
			if value := c.valueOn(c.on(other), rule.TopologyKey); value != "" {
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

// valueOn returns the value of a node's label.
func (c *Cluster) valueOn(node, key string) string {
	if n := c.Nodes[node]; n != nil {
		return n.Labels[key]
	}
	return ""
}

// spread finds other nodes for the pods of a start that are to be spread; nil where there are none.
func (c *Cluster) spread(check *book.Check) []string {
	for _, manner := range book.Manners {
		if nodes := c.arrange(check, manner); nodes != nil {
			return nodes
		}
	}
	return nil
}

func (c *Cluster) arrange(check *book.Check, manner book.Manner) []string {
	leaves, accepted := leaving(check), map[string]int{}
	return check.Arrange(manner, func(place book.Place) book.Verdict {
		why, skewed := c.among(place.Pod, place.Node, leaves, accepted)
		switch {
		case c.rejects(place.Pod, place.Node) != "", why != "" && !skewed:
			return book.Refused
		case skewed:
			return book.Skewed
		}
		accepted[place.Node]++
		return book.Accepted
	})
}
