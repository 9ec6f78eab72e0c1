package book

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Verdict is what other rules say of a pod on a node.
type Verdict int

// Refused is for what the node is, or has on it, and Skewed for how many pods are on nodes that are like it by what the
// pod is to be spread over. Unknown ends an arrangement.
const (
	Accepted Verdict = iota
	Refused
	Skewed
	Unknown
)

// Spot is a node on which pods of a gang may be.
type Spot struct {
	// Pods is how many of the gang's have room on it beside what others hold.
	Pods int
	// Domain is its fast-fabric domain where the gang's groups each lie in one (R12); empty where they do not.
	Domain string
	Labels map[string]string
}

// SpreadKeys returns the labels of nodes over whose values a pod must be spread.
func SpreadKeys(pod *corev1.Pod) (keys []string) {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			keys = append(keys, c.TopologyKey)
		}
	}
	return keys
}

// spotsOf returns the nodes over which a start may spread its pods, by name; nil where none of them is to be spread, or
// some are spares, which lie by their groups.
func (b *Book) spotsOf(g *gang, c *Check) map[string]Spot {
	spreads := slices.ContainsFunc(c.Places, func(p Place) bool { return len(SpreadKeys(p.Pod)) > 0 })
	if !spreads || c.Cuts || g.started() || g.spares.assigned > 0 {
		return nil
	}
	own := map[string]int{}
	for _, p := range c.Places {
		own[p.Node]++
	}
	spots := map[string]Spot{}
	for _, name := range c.Serving {
		most := own[name] + b.fleet.Free(name)/g.full.GPUsPerPod
		if bound, bounded := g.check.upTo[name]; bounded {
			most = min(most, bound)
		}
		if most == 0 || g.shuns(name) {
			continue
		}
		spot := Spot{Pods: most, Labels: b.nodes.byName[name].Labels}
		if g.full.Confined || g.full.OneDomain {
			spot.Domain = b.nodes.domainOf(name)
		}
		spots[name] = spot
	}
	return spots
}

// Arrange gives the pods of a check nodes anew, in the order in which they come, where the rules that they are spread
// by want others than were planned: each goes where the fewest of them are, as those rules have it, and there to as few
// nodes as may be. Put tells what the rules say of a pod beside those that they have accepted. It returns nil where
// they accept none for some pod.
func (c *Check) Arrange(put func(Place) Verdict) (nodes []string) {
	a := arrangement{spots: c.Spots, count: map[string]int{}, divisions: map[string]*division{}}
	for _, p := range c.Places {
		node, found := a.nodeFor(p, put)
		if !found {
			return nil
		}
		a.count[node]++
		for _, d := range a.divisions {
			d.of[node].pods++
		}
		nodes = append(nodes, node)
	}
	return nodes
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

// arrangement is where pods have been put so far.
type arrangement struct {
	spots     map[string]Spot
	count     map[string]int // pods, by node
	divisions map[string]*division
}

// division is the nodes by their values of the labels over which some pods are spread.
type division struct {
	parts []*part // by name
	of    map[string]*part
}

type part struct {
	name  string
	nodes []string // those with the least room first
	pods  int
}

// divide returns the nodes as a pod is spread over them.
func (a *arrangement) divide(pod *corev1.Pod) *division {
	keys := SpreadKeys(pod)
	name := strings.Join(keys, ",")
	if d := a.divisions[name]; d != nil {
		return d
	}
	d, named := &division{of: map[string]*part{}}, map[string]*part{}
	for node, spot := range a.spots {
		values := make([]string, 0, len(keys))
		for _, key := range keys {
			values = append(values, spot.Labels[key])
		}
		name := strings.Join(values, ",")
		if named[name] == nil {
			named[name] = &part{name: name}
			d.parts = append(d.parts, named[name])
		}
		p := named[name]
		p.nodes, p.pods = append(p.nodes, node), p.pods+a.count[node]
		d.of[node] = p
	}
	slices.SortFunc(d.parts, func(x, y *part) int { return strings.Compare(x.name, y.name) })
	for _, p := range d.parts {
		slices.SortFunc(p.nodes, func(x, y string) int {
			return cmp.Or(cmp.Compare(a.spots[x].Pods, a.spots[y].Pods), strings.Compare(x, y))
		})
	}
	a.divisions[name] = d
	return d
}

// nodeFor returns the node that a pod is put on.
func (a *arrangement) nodeFor(p Place, put func(Place) Verdict) (node string, found bool) {
	d, tried := a.divide(p.Pod), map[*part]bool{}
	for range d.parts {
		var next *part
		for _, part := range d.parts {
			fewer := next == nil || part.pods < next.pods || part.pods == next.pods && part == d.of[p.Node]
			if !tried[part] && fewer {
				next = part
			}
		}
		tried[next] = true
	nodes:
		for _, node := range a.inTurn(next, p.Node) {
			switch put(Place{Pod: p.Pod, Node: node}) {
			case Accepted:
				return node, true
			case Unknown:
				return "", false
			case Skewed:
				break nodes // of all nodes of the part alike
			}
		}
	}
	return "", false
}

// inTurn returns the nodes of a part that have room for one more pod and may have one that is planned on some node:
// those that have pods of the gang already first.
func (a *arrangement) inTurn(of *part, planned string) []string {
	var out []string
	for _, node := range of.nodes {
		if spot := a.spots[node]; a.count[node] < spot.Pods && spot.Domain == a.spots[planned].Domain {
			out = append(out, node)
		}
	}
	slices.SortStableFunc(out, func(x, y string) int { return cmp.Compare(a.count[y], a.count[x]) })
	return out
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
	for _, t := range c.instead {
		g.heed(t)
	}
	c.spread, c.instead, c.inVain = nil, nil, true
	return true
}

// heed has a start go by how many of its pods a node takes at most, which is to be left alone where that is below 0.
func (g *gang) heed(t Turning) {
	c := &g.check
	if t.Most < 0 {
		g.excluded[t.Node] = t.Why
		return
	}
	if c.upTo == nil {
		c.upTo, c.why = map[string]int{}, map[string]string{}
	}
	c.upTo[t.Node], c.why[t.Node] = t.Most, t.Why
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
func (c *checking) mostOn() map[string]int {
	if c.spread == nil {
		return c.upTo
	}
	return c.spreadOn
}

// inOrder has the pods of a plan that has them on the nodes over which they are to be spread come to these in the order
// in which the rules accept them.
func (c *checking) inOrder(planned []plan.Assignment) []plan.Assignment {
	if c.spread == nil {
		return planned
	}
	on := map[string][]plan.Assignment{}
	for _, a := range planned {
		on[a.Node] = append(on[a.Node], a)
	}
	out := slices.Clone(planned)
	for i := range out {
		node := c.spread[out[i].Index]
		if out[i].Spare || len(on[node]) == 0 {
			return planned
		}
		from := on[node][0]
		on[node] = on[node][1:]
		out[i].Node, out[i].Domain, out[i].Payer, out[i].Relation = from.Node, from.Domain, from.Payer, from.Relation
	}
	return out
}
