package book

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// late reports whether others make the pods that a running gang lacks, each in its own time (R42). What its ranks ask
// for may differ between its groups by then, so that those are planned one after the other.
func (g *gang) late() bool { return g.started() && g.run.Spec.Theirs() }

// madeLate reports whether they are made only once others of a running gang are bound (R40), so that places are kept
// for them before.
func (g *gang) madeLate() bool { return g.started() && g.run.Spec.TheirsComeLate() }

// comesOneByOne reports whether the first pods of a gang that is made late are past the barrier: each of the others has
// as long for its own cycles as they had.
func (g *gang) comesOneByOne() bool {
	return g.committed && g.run != nil && !g.started() && g.run.Spec.TheirsComeLate()
}

// comesLate reports whether a running gang lacks ranks for which those that there are do not wait.
func (g *gang) comesLate() bool {
	return g.late() && !g.replaces() && g.active.within > 0 && (g.lacksRank() || g.awaitsBelated())
}

// replaces reports whether a running gang waits for replacements of ranks that have been told to go. It does not
// for a rank whose pod has ended and is still there, once nothing is kept for it: others make none, as it seems.
func (g *gang) replaces() bool {
	if s := &g.active; s.leaving <= s.done || !g.late() || len(g.lapses)+len(g.run.Status.Forgone) == 0 {
		return s.leaving > s.done
	}
	return slices.ContainsFunc(g.active.between(0, g.active.size), func(m *member) bool {
		return m != nil && m.leaving && !m.succeeded() && !m.stays()
	})
}

// stays reports whether a rank's pod has ended and is still there, and nothing is kept for the next one.
func (m *member) stays() bool { return m.stage == finished && m.gang.givesUp(m.part.Index) }

// arrived reports whether all pods that there are of the gang have come to the barrier, belated ones apart, and so many
// at least.
func (g *gang) arrived(least int) bool {
	there := 0
	for _, m := range g.active.members {
		if m == nil || m.standIn || m.belated() || m.waitsApart() {
			continue
		}
		if m.stage < reserved {
			return false
		}
		there++
	}
	return there >= least
}

// first returns how many ranks of a gang that is made late have pods before any is bound.
func (g *gang) first() int { return max(1, int(g.run.Spec.Pods.First)) }

// firstAreThere reports whether those have been made.
func (g *gang) firstAreThere() bool {
	there := 0
	for _, m := range g.active.between(0, g.active.size) {
		if m != nil && !m.standIn {
			there++
		}
	}
	return there >= g.first()
}

// plansWith reports whether a rank is planned together with the one that leads.
func (g *gang) plansWith(m *member) bool {
	if !m.part.Spare && g.nodeWait.left[m.part.Index] {
		return false
	}
	lead := g.firstRank()
	return !g.late() || lead == nil || g.scope(lead) == g.scope(m)
}

// completed reports whether others make no pod for a rank, as it seems: it has none, and had completed when it had one
// last.
func (g *gang) completed(index int) bool {
	if !g.run.Spec.Theirs() {
		return false
	}
	m, last := g.rankAt(index), g.latest[rank.Part{Index: index}]
	return (m == nil || m.standIn) && last != nil && last.reason == rqv1.ClosedCompleted
}

// comesTo reports whether a place is kept for a rank whose pod has not been made: whether it can be there is known once
// it has.
func (g *gang) comesTo(v *vacancy) bool { return g.late() && v.own && g.rankAt(v.index) == nil }

// keepPlace keeps a place that a running gang has been given for a rank whose pod is made later.
func (p *placement) keepPlace(g *gang, a plan.Assignment, now time.Time) {
	v := vacancy{pod: types.UID(fmt.Sprintf("%s/late/%d", g.run.UID, a.Index)), index: a.Index, node: a.Node,
		payer: payer{a.Payer, a.Relation}, own: true, since: now}
	p.seats.hold(v.pod, v.node, g.demand.GPUsPerPod, func(h *holding) { h.vacant, h.beside = true, a.Beside })
	g.vacant = append(g.vacant, v)
	p.seats.giveAside(g, a.Index)
	p.accounts.Open(charged(v.pod), p.seats.chargeOf(&member{gang: g, part: a.Part, node: v.node, payer: v.payer}, now))
	p.waiting.file(g)
}

// vacatePlanned gives up what is kept for the ranks that a gang has just been planned for.
func (s *seating) vacatePlanned(g *gang, planned []plan.Assignment) {
	s.vacate(g, func(v *vacancy) bool {
		return !g.late() && !g.nodeWait.left[v.index] || v.index == anyRank ||
			slices.ContainsFunc(planned, func(a plan.Assignment) bool { return !a.Spare && a.Index == v.index })
	})
}

// awaitsTheirs reports whether the first pods of a gang are bound, and others make the rest only once these are ready.
func (g *gang) awaitsTheirs() bool {
	return g.run != nil && g.run.Spec.TheirsComeLate() && g.shape == nil && !g.started() && !g.over() && !g.suspended() &&
		g.firstAreThere() && g.leader() == nil && g.active.leaving == 0 && g.active.within < g.active.size
}

// keepForLate gives gangs places again for pods that are made late: a process that has begun since knows of none. Other
// rules are not asked about them, since only a pod in its cycle can ask, and none is: those that come find it out.
func (x *starter) keepForLate(gangs iter.Seq[*gang], now time.Time) {
	var late []*gang
	for g := range gangs {
		if g.awaitsTheirs() {
			late = append(late, g)
		}
	}
	slices.SortFunc(late, byAge)
	for _, g := range late {
		g.check.trust(now)
		g.committed = true // the first ones are past the barrier
		g.committed = x.planGang(g, g.model(), now) == nil
	}
}

// breaksUp has a gang that lacks pods which others are to make, and that waited for its places with all of them, wait
// for nothing else: nobody knows whether they come, and others are not to be cut for it, or passed over, until they do.
func (b *Book) breaksUp(g *gang) {
	if g.run == nil || !g.run.Spec.Theirs() || g.started() || g.over() || g.suspended() || g.refusal == nil ||
		g.underWay() || g.complete() {
		return
	}
	b.turns.letOff(g)
	b.turns.withdraw(g)
	b.waiting.passOn(g)
	b.waiting.remove(g)
	g.refusal = nil
	b.mail.reconcile(keyOf(g.run), lane.Date)
}
