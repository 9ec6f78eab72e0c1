package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// takeLeaving has a gang whose turn has come take its places where pods are leaving already, and wait until they are gone: nobody
// is cut for it, and nobody younger takes the room meanwhile, bit by bit as it gets free. It does nothing where that would not
// do.
func (b *Book) takeLeaving(g *gang, p *forecast.Promise, state forecast.State, ask forecast.Ask, now time.Time) {
	nodes := map[string]bool{}
	for _, held := range p.Nodes {
		nodes[held.Node] = true
	}
	pods := b.leavingOn(nodes, now)
	if len(pods) == 0 {
		return
	}
	var freed []resolver.Holding
	until := now
	for _, pod := range pods {
		h := b.held[pod]
		freed = append(freed, resolver.Holding{Node: h.node, GPUs: h.gpus})
		if by, ok := b.goesBy(pod, h, now); ok {
			until = latest(until, by)
		}
	}
	ask.Excluded = func(node string) bool { return !nodes[node] }
	assignments, refusal := forecast.Complete(state, ask, freed)
	if refusal != nil {
		return
	}
	g.freeBy = until
	places := b.takePlaces(g, assignments, now)
	for _, pod := range pods {
		if h := b.held[pod]; places[h.node] {
			h.await(g)
		}
	}
	if g.awaiting == 0 {
		b.proceed(g)
	}
}

// takePlaces gives a gang whose turn has come its places at its narrowest, some of which are not free yet, and returns their nodes.
func (b *Book) takePlaces(g *gang, assignments []plan.Assignment, now time.Time) (nodes map[string]bool) {
	b.waiting.remove(g)
	g.refusal, g.woken, g.planned, g.committed, g.deadline = nil, false, true, false, time.Time{}
	b.resize(g, g.narrowest())
	b.assume(g, assignments, now)
	nodes = map[string]bool{}
	for i := range assignments {
		nodes[assignments[i].Node] = true
	}
	return nodes
}

// leavingOn returns the pods on some nodes whose GPUs are about to be free for others: those that have been told to go or whose
// Leases are about to be closed, but for what hangs.
func (b *Book) leavingOn(nodes map[string]bool, now time.Time) []types.UID {
	var out []types.UID
	for _, l := range b.leases {
		if !nodes[l.node] || b.held[l.pod] == nil || !b.ending(l, now) {
			continue
		}
		if _, known := freeAt(b.untilOf(l, now), now); known {
			b.held[l.pod].asked = l.seen.at // as long as it has not been told
			out = append(out, l.pod)
		}
	}
	for pod, h := range b.leavers {
		if _, known := freeAt(h.until, now); nodes[h.node] && known && !h.leased && !h.shard && !h.vacant && b.members[pod] == nil {
			out = append(out, pod)
		}
	}
	slices.Sort(out)
	return out
}
