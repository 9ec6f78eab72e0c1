package book

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// takePlaces gives a gang whose turn has come its places at its narrowest, some of which are not free yet, and returns
// their nodes.
func (v *activations) takePlaces(g *gang, assignments []plan.Assignment, now time.Time) (nodes map[string]bool) {
	v.waiting.remove(g)
	g.refusal, g.woken, g.planned, g.committed, g.deadline = nil, false, true, false, time.Time{}
	v.places.resize(g, g.narrowest())
	v.places.assume(g, assignments, now)
	nodes = map[string]bool{}
	for i := range assignments {
		nodes[assignments[i].Node] = true
	}
	return nodes
}

// takeLeaving has a gang whose turn has come take its places where pods are leaving already, and wait until they are
// gone: nobody is cut for it, and nobody younger takes the room meanwhile, bit by bit as it gets free. It does nothing
// where that would not do. Where other rules are to be asked first, its leader's cycle does it.
func (v *activations) takeLeaving(g *gang, pod *corev1.Pod, p *forecast.Promise, state forecast.State,
	ask forecast.Ask, cycle bool, now time.Time) {
	nodes := map[string]bool{}
	for _, held := range p.Nodes {
		nodes[held.Node] = true
	}
	pods := v.departures.leavingOn(nodes, now)
	if len(pods) == 0 {
		return
	}
	var freed []resolver.Holding
	until := now
	for _, pod := range pods {
		h := v.seats.held[pod]
		freed = append(freed, h.all())
		if by, ok := v.departures.goesBy(pod, h, now); ok {
			until = latest(until, by)
		}
	}
	barred := g.check.without(v.nodes.rejectedAll(g, pod)) // which may be more than when the promise was worked out
	ask.Excluded = func(node string) bool { return !nodes[node] || barred != nil && barred(node) }
	assignments, refusal := forecast.Complete(state, ask, freed)
	asks := v.places.mustAsk(g, pod, assignments, now)
	switch {
	case refusal != nil:
		return
	case asks && !cycle:
		g.ripe = true
		v.waiting.wake(g)
		return
	case asks:
		v.places.ask(g, g.refusal)
	}
	g.freeBy = until
	places := v.takePlaces(g, assignments, now)
	for _, pod := range pods {
		if places[v.seats.held[pod].node] {
			v.seats.await(pod, g)
		}
	}
	if g.awaiting == 0 {
		v.waiting.proceed(g)
	}
	v.mail.reconcile(keyOf(g.run), lane.Begin)
}

// stillLeaving reports whether pods beyond the width of a gang have not given up their room yet.
func (s *seating) stillLeaving(g *gang) bool {
	for _, of := range [...]*squad{&g.active, &g.spares} {
		for _, m := range of.members[min(of.size, len(of.members)):] {
			if m != nil && m.placed() {
				return true
			}
		}
	}
	for i := range g.vacant {
		if h := s.held[g.vacant[i].pod]; g.vacant[i].index == anyRank && h != nil && h.leased {
			return true
		}
	}
	return false
}
