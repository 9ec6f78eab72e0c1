package book

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Assess brings up to date what a Run asks for on the nodes that there are, whether anybody can pay for it and what
// would help one that is refused.
func (b *Book) Assess(run types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.roster.gangs[run]
	if g == nil || g.run == nil {
		return
	}
	b.shapes.demandOf(g, now)
	b.fill.askWhoPays(g, now)
	b.trials.advise(g, now)
	b.drainer.assess(g, now)
}

// Look returns all that is known of a Run, and false for one that the book has not seen yet, or about which other
// scheduling rules are being asked. Of a Run that is gone or being deleted it knows the nodes and Leases alone.
func (b *Book) Look(o Objects) (Look, bool) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	l := Look{Nodes: map[string]NodeState{}, Leased: map[types.UID]bool{}, Opening: map[types.UID]bool{},
		Told: map[types.UID]rqv1.ClosureReason{}, Owed: map[string]int{},
		Commitments: map[types.UID]string{}, Awaited: map[types.UID]bool{}, Unseated: map[types.UID]bool{},
		Broken: map[types.UID]bool{}, Former: map[types.UID]bool{}, Completed: map[int]bool{}, Forgone: map[int]types.UID{},
		Left: map[types.UID]*corev1.Pod{}, Here: map[types.UID]bool{}, Vanished: map[types.UID]Vanished{},
		Moves: map[types.UID]bool{}}
	var g *gang
	if o.Run != nil && o.Run.DeletionTimestamp == nil { // else the book has forgotten it
		g = b.roster.gangs[o.Run.UID]
		if g == nil || g.run == nil || g.check.pending {
			return l, false
		}
		l.State, l.Demand, l.Shape, l.GPUResource = g.state().String(), g.demand, g.shape, g.resource
		l.Unpaid, l.HadLease, l.AtRest = g.unpaid, g.leased, b.roster.atRest(g)
		l.Alone = !g.started() && !g.opportunistic() && !g.musters()
		l.Yields = b.roster.yields(g) || g.outgrown
		l.NotTaken, l.Drain = g.denial.since, g.drain
		l.Musters, l.Disbands = g.awaitsPods() && !l.Alone, l.Alone && g.disbands()
		l.Prospect = b.turns.prospectOf(g)
		l.Priority, l.PlaceSince = b.roster.priorities.of(g.run), g.placeSince()
		b.views.lookAtCompleted(&l, g)
		b.views.lookAtForgone(&l, g)
		l.KeptInVain, l.Inherits = g.keptInVain, b.gone.inheritedBy(g)
		l.Cuts, l.Risks = b.cuts.cutsOf(o.Run.UID), b.agenda.risksOf(o.Name)
	}
	kinds := g.kindsOf()
	for _, node := range l.Lost {
		b.views.lookAtNode(&l, g, kinds, node)
	}
	for _, pod := range o.Pods {
		b.views.lookAtNode(&l, g, kinds, pod.Spec.NodeName)
		if h := b.seats.held[pod.UID]; h != nil {
			l.Leased[pod.UID], l.Opening[pod.UID] = h.leased, h.writing != ""
		}
		b.views.lookAtShard(&l, pod.UID)
		b.sick.lookAtDevices(&l, pod.UID)
		if g != nil {
			if g.moving[pod.UID] {
				l.Moves[pod.UID] = true
			}
			b.views.lookAtSeat(&l, g, pod)
			b.views.lookAtMember(&l, pod.UID)
		}
	}
	for _, lease := range o.Leases {
		b.views.lookAtNode(&l, g, kinds, lease.Node())
		b.views.lookAtShard(&l, lease.PodUID())
		if h := b.seats.held[lease.PodUID()]; h != nil && h.left != nil {
			l.Left[lease.PodUID()] = h.left
		}
		name := keyOf(lease).String()
		if over := b.accounts.OverdraftOf(name); over > 0 {
			l.Owed[name] = over
		}
	}
	b.views.lookAtGone(&l, o)
	for _, r := range o.Reservations {
		if !r.Ended() {
			l.Commitments[r.UID] = b.agenda.commitment(r.UID)
			l.Awaited[r.UID] = o.Run != nil && o.Run.Status.Phase == rqv1.RunRunning && b.turns.victimsRemain(r)
		}
	}
	return l, true
}

// WhatIf says what would happen if a Run were submitted now. It changes nothing. A Run of the same UID, if there is
// one, is left aside as long as it waits.
func (b *Book) WhatIf(run *rqv1.Run, now time.Time) Outlook {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	t := b.trials.begin(run, now)
	if t.study != nil {
		t.study.workOut()
	}
	out := b.trials.conclude(t, now)
	if t.gang != nil && out.Refusal != nil {
		out.Changes = b.trials.changes(t.gang, now)
	}
	return out
}
