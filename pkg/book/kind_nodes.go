package book

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// kindNodes is the nodes of a flavor that pods of a kind may use by what both say. It is never changed, so that plans
// and forecasts may share it.
type kindNodes struct {
	barred  func(node string) bool // the others; nil where there are none
	nodes   []string
	domains map[string][]string
}

// says is what sets kinds of pods apart in which nodes they may use: the flavor, another resource that they ask for,
// and what they say of nodes.
type says struct{ flavor, other, nodes string }

// mostNodesKept bounds for how many kinds of pods it is kept which nodes they may use: so many nodes in all, whatever
// pods say, and however often somebody makes others.
const mostNodesKept = 1 << 17

// usableTo returns the nodes of a flavor that pods like one may use which says so of nodes. It is worked out once, as
// long as the nodes stay as they are: a gang has many kinds of pods, and is asked about many times.
func (t *nodeTable) usableTo(flavor string, pod *corev1.Pod, of string) *kindNodes {
	key := says{flavor, t.asksBut(pod, t.resourceOf(flavor)), of}
	if known := t.usable[key]; known != nil {
		return known
	}
	if (len(t.usable)+1)*max(1, len(t.ofFlavor[flavor])) > mostNodesKept {
		clear(t.usable)
	}
	k, affinity := &kindNodes{}, nodeaffinity.GetRequiredNodeAffinity(pod)
	for name, node := range t.ofFlavor[flavor] {
		if ok, err := affinity.Match(node); key.other == "" && ok && err == nil && tolerates(pod, node) {
			k.nodes = append(k.nodes, name)
		}
	}
	slices.Sort(k.nodes)
	if len(k.nodes) < len(t.ofFlavor[flavor]) {
		usable := map[string]bool{}
		for _, node := range k.nodes {
			usable[node] = true
		}
		k.barred = func(node string) bool { return !usable[node] }
	}
	k.domains = t.inDomains(k.nodes)
	t.usable[key] = k
	return k
}

// inDomains returns nodes by the domains that they lie in.
func (t *nodeTable) inDomains(nodes []string) map[string][]string {
	out := map[string][]string{}
	for _, node := range nodes {
		out[t.fleet.DomainOf(node)] = append(out[t.fleet.DomainOf(node)], node)
	}
	return out
}

// setInFleet has the packer know a node as it is.
func (t *nodeTable) setInFleet(node *corev1.Node) {
	t.fleet.SetNode(t.inFleet(node))
	clear(t.usable)
}
