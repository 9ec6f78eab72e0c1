package book

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/restart"
)

// dies reports whether a member is a rank of a running gang that is started again: it has failed because of its program
// (R34), or its node has ended it or turned it away (R27).
func (m *member) dies() bool {
	g := m.gang
	if m.stage != finished || m.part.Spare || !g.goesOn() || m.surplus() || m.joins() || m.doomed() ||
		g.moving[m.pod.UID] {
		return false
	}
	e, failed := ending.Of(m.pod)
	return failed && (e.Cause == rqv1.CauseProgram && g.startsAgain() || e.Cause == rqv1.CauseNode)
}

// ends notes that the containers of a member's pod have ended. If it has been told to go it leaves its room by that:
// its kubelet says so before the pod is gone, and its Lease closes.
func (b *Book) ends(m *member) {
	leaves := b.roster.open && m.leaving && m.leavesRoom() && !m.lingers()
	b.seats.advance(m, finished, m.pod.Spec.NodeName, m.payer)
	if !m.part.Spare && m.succeeded() {
		b.seats.giveAside(m.gang, m.part.Index)
	}
	if leaves && !m.dies() { // what is kept where one has died is its own
		b.kept.keepRoom(m)
	}
}

// lingers reports whether somebody's finalizer keeps the pod of a rank that is to be made anew, for as long as he
// likes. For what others make nothing is kept for ever.
func (m *member) lingers() bool {
	return len(m.pod.Finalizers) > 0 && m.gang.started() && !m.gang.run.Spec.Theirs()
}

// startsAgain reports whether ranks of the gang that die by their program's doing are started again.
func (g *gang) startsAgain() bool { return g.goesOn() && restart.RulesOf(&g.run.Spec).Limit > 0 }

func (g *gang) goesOn() bool {
	return g.started() && g.shape == nil && !g.opportunistic() && !g.suspended()
}

// keepOwn keeps what a rank has held whose pod has ended, with who pays for it, for the rank alone: others would have
// it before its next pod is there.
func (p *placement) keepOwn(g *gang, l *lease) {
	index := l.part.Index
	if g.hasOwn(index) || !p.nodes.stands(l.node) {
		return
	}
	if h := p.seats.held[l.pod]; h == nil && p.nodes.freeOn(l.node) < l.charge.GPUs {
		return // somebody has it by now
	}
	p.seats.hold(l.pod, l.node, l.charge.GPUs, func(h *holding) {
		h.vacant, h.beside = true, g.asks(l.part, h.beside) // its pod may be gone
	})
	v := vacancy{pod: l.pod, index: index, node: l.node, payer: payerOf(l.charge), own: true, since: l.held}
	if p.seats.outlived(&v) {
		v.elsewhere()
	}
	g.vacant = append(g.vacant, v)
	if l.reason != "" {
		p.seats.giveAside(g, index)
		charge := l.charge
		charge.Start = l.ended
		p.accounts.Open(charged(l.pod), charge)
	}
	p.waiting.file(g)
}

// keepAllOwn does so for all ranks of gangs that run, as the ledger and their pods tell.
func (p *placement) keepAllOwn() {
	var all []*gang
	for g := range p.roster.living { // some of which may have no Run any more
		if g.goesOn() {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, byAge) // of two who had one place the older has it
	for _, g := range all {
		for index := range g.demand.Pods() {
			if l, goesOn := p.goesOn(g, index); goesOn {
				p.keepOwn(g, l)
			}
		}
	}
}

// goesOn returns the last Lease of a rank that has no place, and whether it is to go on there, as the ledger and its
// pods tell.
func (p *placement) goesOn(g *gang, index int) (*lease, bool) {
	l, m := g.latest[rank.Part{Index: index}], g.rankAt(index)
	if l == nil || g.forgone(index) || p.cuts.takes(g, l) || m != nil && m.stage != unplaced && m.stage != finished {
		return nil, false
	}
	return l, l.died() && g.startsAgain() || l.reason == rqv1.ClosedEvicted || p.goesOnThere(g, l) ||
		m != nil && m.pod.UID == l.pod && m.dies()
}

// goesOnThere reports whether a rank is to go on where its last Lease was, whose pod is gone by no doing of its own, or
// of its node: it was deleted or evicted (R27, R42), or nobody has looked since it is gone.
func (p *placement) goesOnThere(g *gang, l *lease) bool {
	_, paid := g.paidBefore(l.part.Index)
	switch l.reason {
	case "":
		return p.roster.members[l.pod] == nil && !g.former(l)
	case rqv1.ClosedDeleted:
		return paid
	case rqv1.ClosedEvicted:
		return paid && !slices.ContainsFunc(g.run.Status.Deaths, func(d rqv1.RunDeath) bool {
			return d.Pod == l.pod && !ending.ByPeople(d.Sign)
		})
	}
	return false
}

// hasOwn reports whether what a rank held is kept for it.
func (g *gang) hasOwn(index int) bool {
	for i := range g.vacant {
		if v := &g.vacant[i]; v.own && v.index == index {
			return true
		}
	}
	return false
}

// hasPlace reports whether a place is kept for a rank: its own or a spare's.
func (g *gang) hasPlace(index int) bool {
	return slices.ContainsFunc(g.vacant, func(v vacancy) bool { return v.seat() && v.index == index })
}

// flees returns the node that a rank is to leave if it can, since it has died there again; empty when there is none.
func (g *gang) flees(m *member) string {
	if m == nil || m.stage != unplaced || g.returns {
		return ""
	}
	return fledFrom(m.pod)
}

func fledFrom(pod *corev1.Pod) string {
	if r, again := rank.RestartOf(pod); again {
		return r.Lost
	}
	return ""
}

// fled returns the nodes that ranks of the gang are to leave if they can.
func (g *gang) fled() (nodes []string) {
	if !g.started() || g.active.first() == nil {
		return nil
	}
	for _, m := range g.active.between(0, g.active.size) {
		if node := g.flees(m); node != "" {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// lastResort reports whether what is kept for a rank is where it has died again, or what its node has ended: it goes
// there for want of anything better.
func (g *gang) lastResort(v *vacancy) bool {
	m := g.rankAt(v.index)
	return v.own && !g.returns && (g.flees(m) == v.node || slices.Contains(g.evicting(v.index, m), v.node))
}
