package book

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Vanished is a pod whose object is gone while its containers may run: whoever deletes a pod by force removes its
// object alone. They use their GPUs until their kubelet ends them, which turns away whoever is bound to these.
type Vanished struct {
	// By is when they are to have ended, counted from when it was told to go, or went by force; zero where that is not
	// known, and they have Grace from then on.
	By    time.Time
	Grace time.Duration
}

// vanished returns what is known of a member whose object is gone; nil where nothing of it runs any more. A spare runs
// nothing on its GPUs.
func (d *departures) vanished(m *member, gone *corev1.Pod) *Vanished {
	if m.part.Spare || !rank.MayRun(gone) || !d.nodes.stands(gone.Spec.NodeName) {
		return nil
	}
	v := &Vanished{By: m.endsBy, Grace: d.graceOf(gone)}
	if v.By.IsZero() && rank.ByForce(gone) {
		v.By = gone.DeletionTimestamp.Add(v.Grace)
	}
	return v
}

// lookAtGone notes what has become of the pods of open Leases that no cache holds.
func (o *observer) lookAtGone(l *Look, of Objects) {
	seats := o.places.seats
	for _, lease := range of.Leases {
		pod := lease.PodUID()
		if _, cached := l.Leased[pod]; cached {
			continue
		}
		if m := seats.roster.members[pod]; m != nil {
			l.Here[pod] = m.pod.Labels[rqv1.LabelRun] == of.Name.Name
			continue
		}
		switch h := seats.held[pod]; {
		case h == nil:
		case h.outlived():
			l.Vanished[pod] = Vanished{By: h.endsBy}
		case h.vanished != nil:
			l.Vanished[pod] = *h.vanished
		}
	}
}

// outlived reports whether a Lease is open for containers whose pod is gone: what it holds is free once they have
// ended.
func (h *holding) outlived() bool { return h != nil && h.leased && !h.endsBy.IsZero() }

// outlived reports whether the room that is kept for a rank is not free yet for that: it goes elsewhere if it can.
func (s *seating) outlived(v *vacancy) bool { return s.held[v.pod].outlived() }

// outlives notes by when what an open Lease holds is free whose pod is gone while its containers may run.
func (s *seating) outlives(l *rqv1.Lease) {
	pod, by := l.PodUID(), l.Status.EndsBy
	h := s.held[pod]
	if h == nil || by == nil || s.leases[keyOf(l)] == nil || s.roster.members[pod] != nil || h.endsBy.Equal(by.Time) {
		return
	}
	h.endsBy, h.until, s.leases[keyOf(l)].outlived = by.Time, by.Time, true
	s.leavers[pod] = h
	s.waiting.changes(s.nodes.nodeFlavor(h.node))
	g := s.roster.gangs[l.Spec.RunRef.UID]
	if g == nil {
		return
	}
	for i := range g.vacant {
		if g.vacant[i].pod == pod {
			g.vacant[i].elsewhere()
		}
	}
	s.waiting.nudge(g) // its rank may go elsewhere
}

// elsewhere has a room not be where its rank goes on before any other.
func (v *vacancy) elsewhere() { v.node, v.payer, v.own = "", payer{}, false }

// awaitsEnd returns those of some ranks of a gang that may have the room of a pod which has vanished once that is free,
// on a node that takes them or may do so again, and for which no spare stands by.
func (s *seating) awaitsEnd(g *gang, missing []plan.Missing) map[int]bool {
	out := map[int]bool{}
	for i := range g.vacant {
		v := &g.vacant[i]
		if !s.outlived(v) || g.nodeWait.inVain {
			continue
		}
		node := s.held[v.pod].node
		takes := s.accepts(g, node, v.index) || s.nodes.outOfService(g, v.index, node)
		if takes && slices.ContainsFunc(missing, func(m plan.Missing) bool {
			return !m.Spare && m.Index == v.index && !s.hasSpareFor(g, m.Part)
		}) {
			out[v.index] = true
		}
	}
	return out
}

// awaitEnd has missing ranks that find no room wait until the containers have ended of their pods that have
// vanished, if there are such; the others go where there is room, as do those of them for which there is some. Where
// there is none for the others nobody waits. It reports false where none of them is such.
func (x *starter) awaitEnd(g *gang, pod *corev1.Pod, missing []plan.Missing, now time.Time) (*plan.Refusal, bool) {
	waits := x.seats.awaitsEnd(g, missing)
	if len(waits) == 0 {
		return nil, false
	}
	why := untilEnded
	if g.started() {
		g.nodeWait.add(waits, time.Time{})
		others := len(waits) < len(missing) || g.goesElsewhere(waits)
		var refusal *plan.Refusal
		if others {
			refusal = x.goesWithout(g, pod, waits, now)
		}
		switch {
		case others && refusal == nil, x.someGo(g, pod, now):
			return x.planGang(g, pod, now), true
		case others && refusal.Reason != plan.NotYet:
			g.nodeWait.inVain = true
			defer func() { g.nodeWait.inVain = false }()
			return x.planGang(g, pod, now), true
		case others && refusal.Awaits:
			why += "; " + refusal.Message
		}
	}
	return g.waitsThere(why), true
}

// outlivedAgain returns the ranks that have no place, and of which several pods have vanished whose containers may run:
// such a rank goes nowhere else meanwhile, so that nobody has a Run hold more and more by deleting its pods.
func (s *seating) outlivedAgain(g *gang) map[int]bool {
	once, again := map[int]bool{}, map[int]bool{}
	for _, l := range s.ofRun[g.run.UID] {
		index := l.part.Index
		if m := g.rankAt(index); !l.outlived || l.part.Spare || m == nil || m.stage != unplaced {
			continue
		}
		if once[index] {
			again[index] = true
		}
		once[index] = true
	}
	return again
}

// planRanks places the missing ranks of a gang, without those of one that runs which are to go nowhere meanwhile.
func (x *starter) planRanks(g *gang, pod *corev1.Pod, now time.Time) *plan.Refusal {
	again := x.seats.outlivedAgain(g)
	if len(again) == 0 || !g.started() {
		return x.planAll(g, pod, now)
	}
	g.nodeWait.add(again, time.Time{})
	refusal := x.leavingOut(g, again, func() *plan.Refusal {
		if g.firstRank() == nil {
			return nil
		}
		return x.planAll(g, pod, now)
	})
	if refusal != nil && (refusal.Passes() || g.narrower > 0) {
		return refusal
	}
	// Others are not ended for some of its ranks, and it waits before it ends.
	return x.planOthers(g, pod, g.waitsThere(outlivedTwice), now)
}

// waitsThere is why ranks wait for where they were.
func (g *gang) waitsThere(message string) *plan.Refusal {
	why := g.notYet(message)
	why.Awaits = true
	return why
}

// hasSpareFor reports whether a spare stands by where a rank may be, and for no other yet.
func (s *seating) hasSpareFor(g *gang, part rank.Part) bool {
	kind := g.variantOf(part)
	return slices.ContainsFunc(g.spares.members, func(m *member) bool {
		return m != nil && m.stage == bound && !m.leaving && !m.surplus() && m.group() == g.demand.Group(part) &&
			!g.seats(m.pod.UID) && (!g.theirs() || s.nodes.accepts(g, m.node, kind))
	})
}

const untilEnded = "a pod was deleted by force, and its containers may still run where it was; its rank goes " +
	"elsewhere if there is room, else back there once they have ended"

const outlivedTwice = "two pods of a rank were deleted by force, and their containers may still run: the rank " +
	"goes elsewhere once those of one have ended"
