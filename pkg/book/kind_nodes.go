package book

import (
	"maps"
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
// pods say, and however often somebody makes others. A hundred kinds of pods have their nodes among 5,000.
const mostNodesKept = 1 << 19

// mostKindsKept bounds for how many kinds it is kept at all: each is told of each node that changes.
const mostKindsKept = 1000

// keptNodes is the nodes that pods of a kind may use, as they were when last asked about, and those of which that is to
// be found out again.
type keptNodes struct {
	*kindNodes
	pod   *corev1.Pod // one of them; nil for all nodes of the flavor
	stale map[string]bool
}

// usableTo returns the nodes of a flavor that pods like one may use which says so of nodes. It is worked out once for
// each node, as long as that stays as it is: a gang has many kinds of pods, and is asked about many times.
func (t *nodeTable) usableTo(flavor string, pod *corev1.Pod, of string) *kindNodes {
	key := says{flavor, t.asksBut(pod, t.resourceOf(flavor)), of}
	if key.other != "" {
		return &kindNodes{barred: func(string) bool { return true }}
	}
	all := t.keptFor(says{flavor: flavor}, nil, nil)
	return t.keptFor(key, pod, all)
}

// keptFor returns what is kept under a key of the nodes that a pod may use, of all that there are.
func (t *nodeTable) keptFor(key says, pod *corev1.Pod, all *kindNodes) *kindNodes {
	k := t.usable[key]
	switch {
	case k == nil:
		if len(t.usable) >= mostKindsKept || (len(t.usable)+1)*max(1, len(t.ofFlavor[key.flavor])) > mostNodesKept {
			clear(t.usable)
		}
		k = &keptNodes{kindNodes: &kindNodes{}, pod: pod, stale: map[string]bool{}}
		t.usable[key] = k
		if all != nil {
			k.kindNodes = t.renewed(key.flavor, k, all, all.nodes)
		} else {
			k.kindNodes = t.renewed(key.flavor, k, nil, slices.Sorted(maps.Keys(t.ofFlavor[key.flavor])))
		}
	case len(k.stale) > 0:
		k.kindNodes = t.renewed(key.flavor, k, all, slices.Sorted(maps.Keys(k.stale)))
		clear(k.stale)
	}
	return k.kindNodes
}

// renewed returns the nodes that are kept as they are once some of them, sorted by name, have changed.
func (t *nodeTable) renewed(flavor string, k *keptNodes, all *kindNodes, changed []string) *kindNodes {
	names, same := t.namesNow(flavor, k, changed)
	if same && k.domains != nil && (all == nil || k.kindNodes == all || k.barred != nil) {
		return k.kindNodes
	}
	if all != nil && len(names) == len(all.nodes) {
		return all
	}
	out := &kindNodes{nodes: names, domains: t.inDomains(names)}
	if all != nil {
		usable := map[string]bool{}
		for _, node := range names {
			usable[node] = true
		}
		out.barred = func(node string) bool { return !usable[node] }
	}
	return out
}

// namesNow returns the names of the nodes that pods may use once some have changed, sorted, and whether these are, and
// lie, as before.
func (t *nodeTable) namesNow(flavor string, k *keptNodes, changed []string) (names []string, same bool) {
	is := func(*corev1.Node) bool { return true }
	if k.pod != nil {
		affinity := nodeaffinity.GetRequiredNodeAffinity(k.pod)
		is = func(node *corev1.Node) bool {
			ok, err := affinity.Match(node)
			return ok && err == nil && tolerates(k.pod, node)
		}
	}
	same = true
	names = slices.DeleteFunc(slices.Clone(k.nodes), func(name string) bool { return k.stale[name] })
	for _, name := range changed {
		node := t.ofFlavor[flavor][name]
		usable := node != nil && is(node)
		_, was := slices.BinarySearch(k.nodes, name)
		_, there := slices.BinarySearch(k.domains[t.fleet.DomainOf(name)], name)
		same = same && was == usable && was == there
		if usable {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, same
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
	t.changed(t.flavorOf(node), node.Name)
}

// changed has it be found out again which pods may use a node. Of a kind that nobody asks about any more nothing is
// kept once more nodes have changed than it has.
func (t *nodeTable) changed(flavor, name string) {
	for key, k := range t.usable {
		if key.flavor != flavor {
			continue
		}
		k.stale[name] = true
		if len(k.stale) > max(mostStale, len(k.nodes)) {
			delete(t.usable, key)
		}
	}
}

// mostStale is how many changed nodes are noted in any case.
const mostStale = 16
