package book

import (
	"fmt"
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
	if len(pod.Spec.NodeSelector) > 0 {
		fmt.Fprint(&out, pod.Spec.NodeSelector) // which is printed sorted
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		out.WriteString(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.String())
	}
	return out.String()
}

// admitting knows which nodes pods may use by what both say.
type admitting struct {
	bars  func(flavor string, pod *corev1.Pod) func(node string) bool
	known map[string]*admissions // by flavor
}

// admissions is by what pods say of nodes which of these they may not use, as far as that was asked since the nodes
// were as they are.
type admissions struct {
	since int64
	of    map[string]map[string]bool
}

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
	if barred := r.w.admits.barred(c.flavor, r.w.nodes[c.flavor], c.pods, g.model()); barred != nil || c.beside != nil {
		out = r.w.fleet.BlocksFor(c.flavor, barred, c.beside, c.need.block.GPUsPerPod)
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

// barred returns a test for the nodes of a flavor that pods may not use which say so of them, since the nodes are as
// they are; nil where there is none. It finds out about each node once.
func (a *admitting) barred(flavor string, since int64, says string, pod *corev1.Pod) func(node string) bool {
	barred, known := a.bars(flavor, pod), a.known[flavor]
	if barred == nil {
		return nil
	}
	if known == nil || known.since != since {
		known = &admissions{since, map[string]map[string]bool{}}
		a.known[flavor] = known
	}
	of := known.of[says]
	if of == nil {
		if len(known.of) >= mostUsable {
			return barred
		}
		of = map[string]bool{}
		known.of[says] = of
	}
	return func(node string) bool {
		is, known := of[node]
		if !known {
			is = barred(node)
			of[node] = is
		}
		return is
	}
}
