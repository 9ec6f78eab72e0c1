package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// usable sets those that wait for room apart by which nodes they may use: by what their pods say of nodes, empty where
// that is not known; and by what they ask for beside GPUs, if nodes had too little of it. It is the same for all of a
// crowd: what nodes have turned down is not.
type usable struct {
	pods   string
	beside *topology.Amounts
}

// usableBy returns which nodes a gang may use that has not started.
func (g *gang) usableBy() (u usable) {
	if g.variants() != nil {
		return u
	}
	u.pods = nodesFor(g.model())
	if g.refusal.Rejected != nil {
		u.beside = g.full.Beside
	}
	return u
}

// nodesFor tells pods from each other that say different things of nodes.
func nodesFor(pod *corev1.Pod) string {
	out := strings.Builder{}
	out.WriteString("as ") // so that it is not empty where they say nothing
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		fmt.Fprintf(&out, "%q%q%q%q,", t.Key, t.Operator, t.Value, t.Effect)
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		fmt.Fprintf(&out, "%q=%q,", key, pod.Spec.NodeSelector[key])
	}
	if required := nodeAffinity(&pod.Spec); required != nil {
		for i := range required.NodeSelectorTerms {
			out.WriteString("|")
			writeTerm(&out, 'l', required.NodeSelectorTerms[i].MatchExpressions)
			writeTerm(&out, 'f', required.NodeSelectorTerms[i].MatchFields)
		}
	}
	return out.String()
}

// writeTerm writes what a term says of labels or of fields, quoted: no value can be taken for two.
func writeTerm(out *strings.Builder, of byte, requirements []corev1.NodeSelectorRequirement) {
	for i := range requirements {
		r := &requirements[i]
		fmt.Fprintf(out, "%c%q%q%q,", of, r.Key, r.Operator, r.Values)
	}
}

// admitting knows which nodes pods may use by what both say.
type admitting struct {
	bars  func(flavor string, pod *corev1.Pod) func(node string) bool
	of    func(flavor string) map[string]*corev1.Node
	known map[string]map[string]*admission // by flavor, and what pods say of nodes
	asked int64                            // how often
}

// admission is the nodes that pods may use which say the same of them, but for those of which that is to be found out
// again, and when it was asked last.
type admission struct {
	usable  map[string]bool
	unknown map[string]bool
	asked   int64
}

// mostNodesAsked is how many nodes are asked about while the book waits.
const mostNodesAsked = 10000

// mostUsable is for how many of those who may use different nodes it is looked at which. Others are taken to be able
// to use all: they are planned in vain more often.
const mostUsable = 64

// usableTo returns what is left for those of a crowd; nil where that is all that there is, or is not known.
func (r *round) usableTo(g *gang, c *crowd) *topology.Blocks {
	key := c.usableKey()
	out, known := r.usable[key]
	if known || c.pods == "" || len(r.usable) >= mostUsable {
		return out
	}
	usable, known := r.w.admits.usable(c.flavor, c.pods, g.model(), &r.asked)
	if !known {
		r.usable[key] = nil
		return nil
	}
	if usable != nil || c.beside != nil {
		out = r.w.fleet.BlocksFor(c.flavor, usable, c.beside, c.need.block.GPUsPerPod)
	}
	r.usable[key] = out
	return out
}

// usableKey is what sets apart how many pods find room on nodes.
type usableKey struct {
	flavor     string
	gpusPerPod int
	usable
}

func (c *crowd) usableKey() usableKey { return usableKey{c.flavor, c.need.block.GPUsPerPod, c.usable} }

// usable returns the nodes of a flavor that pods may use which say so of them; nil where that is all. It finds out
// about each node once, as long as that stays as it is. It is not known where so many nodes have been asked about that
// this would be too much.
func (a *admitting) usable(flavor, says string, pod *corev1.Pod, asked *int) (nodes map[string]bool, known bool) {
	barred := a.bars(flavor, pod)
	if barred == nil {
		return nil, true
	}
	is := a.admissionOf(flavor, says)
	if is == nil {
		return nil, false
	}
	if *asked > 0 && *asked+len(is.unknown) > mostNodesAsked {
		return nil, false
	}
	*asked += len(is.unknown)
	for node := range is.unknown {
		if a.of(flavor)[node] != nil && !barred(node) {
			is.usable[node] = true
		} else {
			delete(is.usable, node)
		}
	}
	clear(is.unknown)
	return is.usable, true
}

// admissionOf returns what is known for pods that say so, instead of what nobody has asked for long where there is
// much; nil where all of it is asked for. A round asks for one after the other: each would take the place of the next.
func (a *admitting) admissionOf(flavor, says string) *admission {
	known := a.known[flavor]
	if known == nil {
		known = map[string]*admission{}
		a.known[flavor] = known
	}
	is := known[says]
	if is == nil {
		if len(known) >= mostUsable {
			last := slices.MinFunc(slices.Collect(maps.Keys(known)), func(x, y string) int {
				return cmp.Compare(known[x].asked, known[y].asked)
			})
			if a.asked-known[last].asked < 2*mostUsable {
				a.asked++
				return nil
			}
			delete(known, last)
		}
		is = &admission{usable: map[string]bool{}, unknown: map[string]bool{}}
		for node := range a.of(flavor) {
			is.unknown[node] = true
		}
		known[says] = is
	}
	a.asked++
	is.asked = a.asked
	return is
}

// changed notes that a node says something else, has come or is gone.
func (a *admitting) changed(node string) {
	for flavor, known := range a.known {
		for says, is := range known {
			is.unknown[node] = true
			if len(is.unknown) > 2*len(a.of(flavor)) { // nobody has asked for it while many have come and gone
				delete(known, says)
			}
		}
	}
}
