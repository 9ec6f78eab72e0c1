package book

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// asksForSeats reports whether other scheduling rules are to be asked about ranks in the places of spares.
func (g *gang) asksForSeats() bool {
	return slices.ContainsFunc(g.vacant, func(v vacancy) bool { return v.asks && g.rankAt(v.index) != nil })
}

// rankAt returns the pod of a rank; nil when it has none.
func (g *gang) rankAt(index int) *member {
	if index < 0 || index >= len(g.active.members) {
		return nil
	}
	return g.active.members[index]
}

// seatsToAsk adds to a check the ranks that are to take the places of spares, with the spares and the shards over them
// gone.
func (p *placement) seatsToAsk(g *gang, c *Check) {
	for i := range g.vacant {
		v := &g.vacant[i]
		m := g.rankAt(v.index)
		if !v.asks || m == nil {
			continue
		}
		c.Places = append(c.Places, Place{Pod: m.pod, Node: v.node})
		c.Leaving[v.node] = append(c.Leaving[v.node], v.pod)
		p.seats.hold(v.pod, "", 0, func(h *holding) { h.asks = false })
		p.shardsLeaving(c, v.node)
		p.seats.hold(v.pod, "", 0, func(h *holding) { h.asks = true })
	}
}

// shardsToAsk adds to a check the shards that leave for the ranks which are given places.
func (p *placement) shardsToAsk(c *Check) {
	seen := map[string]bool{}
	for _, place := range c.Places {
		if !seen[place.Node] && p.overfull(place.Node) {
			p.shardsLeaving(c, place.Node)
		}
		seen[place.Node] = true
	}
}

// shardsLeaving adds the shards that leave a node or are to.
func (p *placement) shardsLeaving(c *Check, node string) {
	going := p.goingFrom(node)
	for shard := range p.seats.shards[node] {
		if p.givesWay(shard) || slices.Contains(going, shard) {
			c.Leaving[node] = append(c.Leaving[node], shard)
		}
	}
}

// concludeSeats has those ranks have the places of their spares that other rules accept there: the shards over those
// spares leave while the ledger follows. The spares of the others stand by, and their ranks look elsewhere.
func (p *placement) concludeSeats(g *gang, c *Check, no []Turning) {
	for _, place := range c.Places {
		m := p.roster.members[place.Pod.UID]
		if m == nil {
			continue
		}
		at := slices.IndexFunc(no, func(t Turning) bool { return t.Pod == place.Pod.UID && t.Node == place.Node })
		if at >= 0 {
			g.exclude(m, place.Node, no[at].Why, g.isOfFewKinds())
			g.spurn(m, place.Node)
			m.unseated = true
		}
		p.seats.vacate(g, func(v *vacancy) bool { return v.asks && v.index == m.part.Index && at >= 0 })
		for i := range g.vacant {
			if v := &g.vacant[i]; v.index == m.part.Index && v.asks {
				v.asks = false
				p.seats.hold(v.pod, "", 0, func(h *holding) { h.asks = false })
				p.reclaim(v.node, rqv1.ClosedReclaimedBySpare, nil)
			}
		}
	}
	p.waiting.wake(g)
}

// accepts reports whether a rank of a gang could be bound to a node in the place of a spare that stands by there, which
// holds all that the rank asks for: nobody else may have come to hold it besides.
func (s *seating) accepts(g *gang, name string, index int) bool {
	return s.acceptsKind(g, name, g.variantOf(rank.Part{Index: index}))
}

func (s *seating) acceptsKind(g *gang, name string, kind *variant) bool {
	return s.nodes.accepts(g, name, kind) &&
		s.holdsInBoth(name, func() bool { return s.fleet.Lacks(name, kind.beside, 0) == "" })
}

// kindsOf returns the variants of a gang's ranks, with those ranks: of one that has no pod that of the pod that ran as
// it last, if that is known. It is nil where all that have pods are of one and none is without.
func (g *gang) kindsOf() map[*variant][]int {
	if g == nil || !g.theirs() || g.variants() == nil && g.active.present >= g.active.size {
		return nil
	}
	var variants variants
	out := map[*variant][]int{}
	for index := range max(g.active.size, len(g.active.members)) {
		m := g.rankAt(index)
		if m == nil || m.standIn {
			m = g.ran[index]
		}
		if m != nil {
			s := variants.of(g, m.pod, m.says(), m.beside)
			out[s] = append(out[s], index)
		}
	}
	return out
}

// acceptsOf reports whether any rank of a gang could be bound to a node, and which could not.
func (s *seating) acceptsOf(g *gang, name string, kinds map[*variant][]int) (some bool, but map[int]bool) {
	if g == nil || g.spurned[name] {
		return false, nil
	}
	if kinds == nil {
		return s.acceptsKind(g, name, g.variantOf(rank.Part{})), nil
	}
	but = map[int]bool{}
	for kind, ranks := range kinds {
		accepts := s.acceptsKind(g, name, kind)
		some = some || accepts
		for _, index := range ranks {
			but[index] = !accepts
		}
	}
	return some, but
}

// mostBeside returns how many pods nodes take at most beside those of a gang that have been planned there by
// themselves.
func (s *seating) mostBeside(g *gang, most map[string]int) map[string]int {
	out := maps.Clone(most)
	for _, m := range g.active.members {
		if m == nil || m.stage != assigned || s.held[m.pod.UID].seated {
			continue
		}
		if n, bounded := out[m.node]; bounded {
			out[m.node] = max(0, n-1)
		}
	}
	return out
}

// standsBy reports whether a spare stands by where a rank of its group could go on, and makes room for no other.
func (s *seating) standsBy(spare *member, index int) bool {
	if spare == nil || spare.stage != bound || spare.leaving || spare.doomed() {
		return false
	}
	g, node := spare.gang, spare.node
	return !g.seats(spare.pod.UID) && !g.spurned[node] && s.accepts(g, node, index)
}

// hasSeat reports whether a rank has room in the place of a spare, which may hold it still.
func (s *seating) hasSeat(spare *holding, node string, gpus int) bool {
	return s.holdsInBoth(node, func() bool {
		if spare == nil {
			return s.nodes.freeOn(node) >= gpus
		}
		return s.roomFor(node) >= gpus
	})
}

// holdsInBoth reports whether something holds of a node in both views of it: until those have left whom gangs wait for,
// and once they have.
func (s *seating) holdsInBoth(node string, holds func() bool) bool {
	out := true
	s.inBothViews(node, nil, func() { out = out && holds() })
	return out
}

// inBothViews has somebody look at a node without the places of some gangs, as it is once those have left whom others
// wait for, and as it is until then, without the places of these either. What a spare holds shards have in both.
func (s *seating) inBothViews(node string, but map[*gang]bool, look func()) {
	fork := plan.NewFork(s.fleet, s.accounts)
	without := func(g *gang) {
		for _, m := range g.active.members {
			if m != nil && m.stage == assigned && m.node == node {
				held := g.holding(m)
				fork.Give(node, held.GPUs, held.Beside)
			}
		}
	}
	for g := range but {
		without(g)
	}
	start, waiting := fork.Mark(), map[*gang]bool{}
	for _, h := range s.waitedFor {
		leaves := false
		for _, g := range h.awaitedBy {
			leaves, waiting[g] = leaves || !but[g], !but[g]
		}
		if leaves && h.node == node && !h.shard && !h.idles() {
			fork.Give(node, h.gpus, h.beside)
		}
	}
	look()
	fork.RevertTo(start)
	for g, waits := range waiting {
		if waits {
			without(g)
		}
	}
	look()
	fork.Revert()
}

// claimAgain has ranks claim the places of their spares again where other rules turned them down and may not any more.
func (p *placement) claimAgain(g *gang) {
	for _, m := range g.active.members {
		if m == nil || !m.unseated {
			continue
		}
		if r, _ := rank.ReplacementOf(m.pod); g.turnedBy()[r.Node] == "" {
			m.unseated = false
			p.claimSeat(m)
		}
	}
}

// ask notes that other scheduling rules are to be asked about what a gang has just been given, or is just about to be,
// and why it was refused before.
func (p *placement) ask(g *gang, before *plan.Refusal) {
	g.check.ask(before)
	p.roster.asking[g.run.UID] = true
}

// mustAsk reports whether other rules are to be asked before a gang has its places: its pods use such as a plan does
// not know, or shards leave for them, and what stands in the way may be another pod's rule.
func (p *placement) mustAsk(g *gang, pod *corev1.Pod, places []plan.Assignment, now time.Time) bool {
	return p.nodes.asks && len(places) > 0 && !now.Before(g.check.unasked) &&
		(g.asksBeyond(pod) || slices.ContainsFunc(places, func(a plan.Assignment) bool {
			return !a.Spare && len(p.seats.shards[a.Node]) > 0
		}))
}
