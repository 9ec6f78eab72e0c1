package book

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// SpreadKeys returns the labels of nodes over whose values a pod must be spread.
func SpreadKeys(pod *corev1.Pod) (keys []string) {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			keys = append(keys, c.TopologyKey)
		}
	}
	return keys
}

// nextInTurn returns the first rank of a start that is still to come to its node and must be spread over nodes: the
// rules look at each beside those that have come, so that they come in order. Those that are made only once others run
// are not waited for.
func (g *gang) nextInTurn() *member {
	if g.started() || g.committed {
		return nil
	}
	late := g.run != nil && g.run.Spec.TheirsComeLate()
	for _, m := range g.active.members {
		if m != nil && m.stage == assigned && len(SpreadKeys(m.pod)) > 0 && !(late && m.standIn) {
			return m
		}
	}
	return nil
}

// awaitsTurn reports whether another rank of a member's gang must come to its node before it may.
func (g *gang) awaitsTurn(m *member) bool {
	if m.stage != assigned || m.part.Spare || len(SpreadKeys(m.pod)) == 0 {
		return false
	}
	next := g.nextInTurn()
	return next != nil && next.part.Index < m.part.Index
}

// lay has the next plan of a start put the pods where other rules would have them spread, rather than go by what nodes
// have said of where the others are. It is tried once.
func (c *checking) lay(asked *Check) {
	c.spread, c.spreadOn = map[int]string{}, map[string]int{}
	for node := range asked.Spots {
		c.spreadOn[node] = 0
	}
	for i, node := range asked.Spread {
		c.spread[asked.ranks[i]] = node
		c.spreadOn[node]++
	}
}

// unlay has a start go by what nodes have said after all, since no plan can have its pods where they would be spread:
// nobody pays there, or the nodes are not to be used.
func (g *gang) unlay() bool {
	c := &g.check
	if c.spread == nil {
		return false
	}
	few := g.isOfFewKinds()
	for _, t := range c.instead {
		g.heed(t, g.rankOf(t.Pod), few)
	}
	c.spread, c.instead, c.inVain = nil, nil, true
	return true
}

// forget has what some nodes have said of a gang not count any more.
func (g *gang) forget(of func(node string) bool) {
	maps.DeleteFunc(g.upTo, func(node string, _ int) bool { return of(node) })
	g.readmit(func(node, _ string) bool { return of(node) })
}

// skew notes that a node turned a start down for where the others are.
func (c *checking) skew(node string) {
	if c.skewed == nil {
		c.skewed = map[string]bool{}
	}
	c.skewed[node] = true
}

// leftSince reports whether a pod has left any node since a gang was tried last: who must be spread over nodes may then
// be on others.
func (w *waitlist) leftSince(g *gang) bool {
	for _, at := range w.left {
		if at.since(g) {
			return true
		}
	}
	return false
}

// mostOn returns how many pods nodes take at most: as many as are to be there where the pods are spread, else by what
// nodes have said.
func (g *gang) mostOn() map[string]int {
	if g.check.spread == nil {
		return g.upTo
	}
	return g.check.spreadOn
}

// inOrder has the pods of a plan that has them on the nodes over which they are to be spread come to these in the order
// in which the rules accept them. Each keeps its payer where all of these pay on the nodes that they come to (R6).
func (x *starter) inOrder(g *gang, planned []plan.Assignment) []plan.Assignment {
	c := &g.check
	if c.spread == nil {
		return planned
	}
	on := map[string][]plan.Assignment{}
	for _, a := range planned {
		on[a.Node] = append(on[a.Node], a)
	}
	out, reach := slices.Clone(planned), true
	for i := range out {
		node := c.spread[out[i].Index]
		if out[i].Spare || len(on[node]) == 0 {
			return planned
		}
		from := on[node][0]
		on[node] = on[node][1:]
		reach = reach && x.accounts.Reaches(out[i].Payer, x.nodes.byName[node].Labels)
		from.Part, from.Group = out[i].Part, out[i].Group
		out[i] = from
	}
	for i := range out {
		if reach {
			out[i].Payer, out[i].Relation = planned[i].Payer, planned[i].Relation
		}
	}
	return out
}
