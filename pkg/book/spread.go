package book

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
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

// nextInTurn returns the first of the ranks that are placed together which is still to come to its node and must be
// spread over nodes: the rules look at each beside those that have come, so that they come in order. Those that are
// made only once others run are not waited for.
func (g *gang) nextInTurn() *member {
	if g.committed {
		return nil
	}
	late := g.run != nil && g.run.Spec.TheirsComeLate()
	for _, m := range g.active.members {
		if m != nil && m.stage == assigned && !m.extra() && len(SpreadKeys(m.pod)) > 0 && !(late && m.standIn) {
			return m
		}
	}
	return nil
}

// asTheyCome returns the members of a gang in the order in which they come to their nodes: ranks before spares, and
// those that are made only once others run after these.
func (g *gang) asTheyCome() []*member {
	var made, late, spares []*member
	for m := range g.all() {
		switch {
		case m.part.Spare:
			spares = append(spares, m)
		case m.standIn:
			late = append(late, m)
		default:
			made = append(made, m)
		}
	}
	return slices.Concat(made, late, spares)
}

// awaitsTurn reports whether another rank of a member's gang must come to its node before it may. Spares come last: the
// rule by which ranks are spread may count them.
func (g *gang) awaitsTurn(m *member) bool {
	if m.stage != assigned || m.extra() || !m.part.Spare && len(SpreadKeys(m.pod)) == 0 {
		return false
	}
	next := g.nextInTurn()
	return next != nil && (m.part.Spare || next.part.Index < m.part.Index)
}

// layout is where the rules by which pods are spread would have those of a gang be.
type layout struct {
	// at is the epoch of the nodes that were looked at.
	at int64
	// cuts says that it is for a decision to cut, and exact that the pods are to be on these very nodes.
	cuts, exact bool
	// early says that a start was asked about, which others have to be cut for.
	early bool
	// on is the node of each pod.
	on map[rank.Part]string
	// most is how many pods each node that was looked at is to take at most; nil where parts say to which part of the
	// nodes each belongs: as many pods are to be in each as are by on, on whichever of its nodes.
	most  map[string]int
	parts map[string]string
	// instead is what nodes have said for where the others are, by which it goes if no plan has the pods lie so: that has
	// been in vain then, until something has changed.
	instead []Turning
}

// lay has the next plan of a start, or of ranks that come later, or decision to cut, put the pods where other rules
// would have them spread, rather than go by what nodes have said of where the others are: a start once, and a decision
// on such parts of the nodes first, so that it is drawn among all who are there, and then on these very nodes. It
// reports whether it has, and what nodes had said instead of a layout that has turned out to be none.
func (c *checking) lay(asked *Check) (lays bool, instead []Turning) {
	before := c.laidFor(asked.Cuts)
	if asked.Unsure || asked.Unlaid {
		return false, nil
	}
	c.laid = nil
	if before != nil {
		instead = before.instead
	}
	switch {
	case len(asked.Spread) == 0 && before != nil && before.parts != nil:
		c.laid = before // it was for something else that nodes turned it down
		return false, nil
	case len(asked.Cleared) > 0:
		c.laid = layOut(asked, asked.Cleared)
		c.laid.cuts, c.laid.early = true, true
		c.laid.loosen(asked)
		return false, nil
	case len(asked.Spread) == 0 || c.inVain[asked.Cuts] || before != nil && before.exact:
		return false, instead
	}
	c.laid = layOut(asked, asked.Spread)
	if asked.Cuts && (before == nil || before.early) {
		c.laid.loosen(asked)
	}
	return true, nil
}

// layOut returns the layout that has the pods of a check on these very nodes.
func layOut(asked *Check, nodes []string) *layout {
	l := &layout{at: asked.epoch, cuts: asked.Cuts, exact: true, on: map[rank.Part]string{}, most: map[string]int{}}
	for node := range asked.Spots {
		l.most[node] = 0
	}
	for i, node := range nodes {
		if asked.sits(i) {
			continue // no plan places it
		}
		l.on[asked.ranks[i]] = node
		l.most[node]++
	}
	return l
}

// loosen has a layout bind pods to no more than it must: where some nodes that are each for itself stay without any,
// all may have as many as one has, and else pods are bound to parts of the nodes, if there are few.
func (l *layout) loosen(asked *Check) {
	keys, parts := spreadKeysOf(asked.Places), map[string]string{}
	if keys == nil {
		return
	}
	nodes, used := map[string]int{}, map[string]bool{}
	for node := range asked.Spots {
		parts[node] = partOf(keys, asked.Spots[node].Labels)
		nodes[parts[node]]++
	}
	for part, node := range l.on {
		if !part.Spare {
			used[parts[node]] = true
		}
	}
	switch {
	case len(nodes) == len(parts) && len(used) < len(nodes):
		most := slices.Max(slices.Collect(maps.Values(l.most)))
		for node := range l.most {
			l.most[node] = most
		}
	case len(used) < mostKinds:
		l.parts, l.most = parts, nil
	default:
		return
	}
	l.exact = false
}

// spreadKeysOf returns over which labels pods are spread; nil where not all that are spread are by the same.
func spreadKeysOf(places []Place) (keys []string) {
	for _, p := range places {
		switch own := SpreadKeys(p.Pod); {
		case keys == nil:
			keys = own
		case len(own) > 0 && !slices.Equal(own, keys):
			return nil
		}
	}
	return keys
}

// partOf names the part of the nodes that one is in, by the labels over which pods are spread.
func partOf(keys []string, labels map[string]string) string {
	values := make([]string, 0, len(keys))
	for _, key := range keys {
		values = append(values, labels[key])
	}
	return strings.Join(values, ",")
}

// outside returns a test for the nodes outside of a part; nil for none.
func (l *layout) outside(part string) func(node string) bool {
	if part == "" {
		return nil
	}
	return func(node string) bool { return l.parts[node] != part }
}

// laidFor returns the layout by which a start goes, or a decision to cut; nil where there is none.
func (c *checking) laidFor(cuts bool) *layout {
	if c.laid == nil || c.laid.cuts != cuts {
		return nil
	}
	return c.laid
}

// unlay has a start, or a decision to cut, go by what nodes have said after all, since no plan can have its pods where
// they would be spread: nobody pays there, or the nodes are not to be used.
func (g *gang) unlay(cuts bool, now time.Time) bool {
	c := &g.check
	l, into := c.laidFor(cuts), &g.turnings
	if l == nil {
		return false
	}
	if cuts {
		into = &c.cuts
		if c.until.IsZero() { // what nodes have said counts for a time, whoever asked
			c.shun(now)
		}
	}
	g.heedInstead(into, l.instead)
	c.laid = nil
	if c.inVain == nil {
		c.inVain = map[bool]bool{}
	}
	c.inVain[cuts] = !l.early
	return true
}

// heedInstead has plans go by what nodes have said, since there is no layout any more.
func (g *gang) heedInstead(into *turnings, instead []Turning) {
	few := g.isOfFewKinds()
	for _, t := range instead {
		into.heed(t, g.rankOf(t.Pod), few)
	}
}

// served has the pods that have been accepted not be asked about again. Those that have no place yet are laid out anew.
func (c *checking) served() { c.again, c.passed, c.laid = false, nil, nil }

// forgetLayout has a gang be laid out anew where that was in vain, or altogether but for a decision that is under way.
func (c *checking) forgetLayout(all bool) {
	clear(c.inVain)
	if all && c.laid != nil && c.laid.early {
		c.laid = nil
	}
}

// forget has what some nodes have said not count any more.
func (s *turnings) forget(of func(node string) bool) {
	maps.DeleteFunc(s.upTo, func(node string, _ int) bool { return of(node) })
	maps.DeleteFunc(s.why, func(node, _ string) bool { return of(node) })
	s.readmit(func(node, _ string) bool { return of(node) })
}

// alters reports whether a node has become another for rules that look at several nodes.
func alters(old, node *corev1.Node) bool {
	return old == nil || old.UID != node.UID || !maps.Equal(old.Labels, node.Labels) ||
		!equality.Semantic.DeepEqual(old.Status.Allocatable, node.Status.Allocatable) ||
		!slices.Equal(lastingTaints(old), lastingTaints(node))
}

// lastingTaints names the taints of a node that those who serve it have given it: those that come and go with its state
// are none.
func lastingTaints(node *corev1.Node) (out []string) {
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			out = append(out, t.ToString())
		}
	}
	slices.Sort(out)
	return out
}

// skew notes that a node turned a gang down for where the others are: a node that takes none is not left alone for it.
func (c *checking) skew(t *Turning) {
	if c.skewed == nil {
		c.skewed = map[string]bool{}
	}
	c.skewed[t.Node], t.Most = true, max(0, t.Most)
}

// elsewhere returns how many pods nodes take at most when the others are elsewhere.
func (c *checking) elsewhere(most map[string]int) map[string]int {
	if len(c.skewed) == 0 {
		return most
	}
	out := maps.Clone(most)
	maps.DeleteFunc(out, func(node string, _ int) bool { return c.skewed[node] })
	return out
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
	if l := g.check.laidFor(false); l != nil {
		return l.most
	}
	return g.upTo
}

// inOrder has the pods of a plan that has them on the nodes over which they are to be spread come to these in the order
// in which the rules accept them. Each keeps its payer where all of these pay on the nodes that they come to (R6).
func (s *seating) inOrder(l *layout, planned []plan.Assignment) []plan.Assignment {
	if l == nil || !l.exact {
		return planned
	}
	on := map[string][]plan.Assignment{}
	for _, a := range planned {
		on[a.Node] = append(on[a.Node], a)
	}
	out, reach := slices.Clone(planned), true
	for i := range out {
		node := l.on[out[i].Part]
		if len(on[node]) == 0 {
			return planned
		}
		from := on[node][0]
		on[node] = on[node][1:]
		reach = reach && s.accounts.Reaches(out[i].Payer, s.nodes.byName[node].Labels)
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
