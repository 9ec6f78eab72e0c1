package book

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// vacancy is the room of a pod that is gone, or goes, and that a rank of its gang is to have.
type vacancy struct {
	pod types.UID
	// index of the rank; anyRank for the room of a pod beyond the width, which any rank may take.
	index int
	// node and payer are what the rank gets with the room of a spare; empty for other rooms.
	node  string
	payer payer
}

const anyRank = -1

// charged returns the name of the charge for the room of a pod that is gone.
func charged(pod types.UID) string { return "vacant/" + string(pod) }

// seat reports whether the room is a spare's, that one rank takes over as it is.
func (v *vacancy) seat() bool { return v.node != "" }

// keepRoom keeps the room and the money of a pod that is lost, once the pod's Lease is closed: otherwise whoever waits would
// take it first, and the Run would end for want of it. The room of a rank is its replacement's; that of a pod which makes
// room for ranks that have none is theirs.
func (b *Book) keepRoom(m *member) {
	if m.gang.keepsRoom() {
		b.addPlace(m)
		return
	}
	index := m.part.Index
	if m.surplus() {
		index = anyRank
	}
	b.hold(m.pod.UID, "", 0, func(h *holding) { h.vacant = true })
	m.gang.vacant = append(m.gang.vacant, vacancy{pod: m.pod.UID, index: index})
}

// leavesRoom reports whether what a lost pod held is to be kept for its gang.
func (m *member) leavesRoom() bool {
	g := m.gang
	switch {
	case g.keepsRoom():
		return m.stage >= leased && m.stage < finished && !m.doomed() && !g.opportunistic()
	case m.stage != bound || !g.started() || m.doomed() || g.opportunistic():
		return false
	case m.surplus():
		return !g.active.whole() || g.active.first() != nil
	}
	return !m.part.Spare
}

// vacate gives up the room that is kept for replacements and that is not wanted any more.
func (b *Book) vacate(g *gang, unwanted func(*vacancy) bool) {
	g.vacant = slices.DeleteFunc(g.vacant, func(v vacancy) bool {
		if !unwanted(&v) {
			return false
		}
		if charge, ok := b.accounts.Void(charged(v.pod)); ok {
			b.wakeBudget(charge.Payer.Budget)
		}
		b.hold(v.pod, "", 0, func(h *holding) { h.vacant = false })
		return true
	})
}

// vacateAll gives up all of it.
func (b *Book) vacateAll(g *gang) { b.vacate(g, func(*vacancy) bool { return true }) }

// from returns a test for what is kept for ranks from an index on.
func from(index int) func(*vacancy) bool { return func(v *vacancy) bool { return v.index >= index } }

// claimSeat keeps the room of the spare that a pod's record names for that pod alone, from before the spare gives it up
// until the pod has it. Where that is and who pays is what the ledger says.
func (b *Book) claimSeat(m *member) {
	g := m.gang
	r, ok := rank.ReplacementOf(m.pod)
	if !ok || m.part.Spare || m.stage != unplaced || !g.started() || g.shape != nil || m.surplus() || m.joins() ||
		g.excluded[r.Node] != "" || g.seats(r.SpareUID) {
		return
	}
	spare := g.spareLease(r)
	if spare == nil {
		return
	}
	if m := b.members[r.SpareUID]; m != nil && (m.gang != g || !m.part.Spare || m.doomed()) {
		return
	}
	if h := b.held[r.SpareUID]; h != nil && (h.node != r.Node || len(h.awaitedBy) > 0) || h == nil && b.freeOn(r.Node) < g.demand.GPUsPerPod {
		return // the record is of no use any more
	}
	b.hold(r.SpareUID, r.Node, g.demand.GPUsPerPod, func(h *holding) { h.vacant, h.spare, h.run = true, true, g.run.UID })
	g.vacant = append(g.vacant, vacancy{pod: r.SpareUID, index: m.part.Index, node: r.Node, payer: g.paysForSeat(m.part, r, spare)})
	b.reclaim(r.Node, rqv1.ClosedReclaimedBySpare, nil) // they leave while the ledger follows
}

// leaveSeat gives up what was kept for a pod that is gone, if its spare has not been told to go: the spare stands by again.
func (b *Book) leaveSeat(m *member) {
	b.vacate(m.gang, func(v *vacancy) bool {
		spare := b.members[v.pod]
		return !m.part.Spare && v.seat() && v.index == m.part.Index && spare != nil && !spare.leaving
	})
}

// claimSeats has all ranks whose records name spares claim their rooms, those of older Runs first.
func (b *Book) claimSeats() {
	var started []*gang
	for _, g := range b.gangs {
		if g.started() {
			started = append(started, g)
		}
	}
	slices.SortFunc(started, byAge)
	for _, g := range started {
		for _, m := range g.active.members {
			if m != nil {
				b.claimSeat(m)
			}
		}
	}
}

// seats reports whether the room of a spare is kept for a rank of the gang.
func (g *gang) seats(spare types.UID) bool {
	return slices.ContainsFunc(g.vacant, func(v vacancy) bool { return v.seat() && v.pod == spare })
}

// freeOn returns how many GPUs of a node are free; 0 for one that is not there.
func (b *Book) freeOn(name string) int {
	node := b.nodes[name]
	if node == nil {
		return 0
	}
	return b.gpusOf(node) - b.fleet.Held(name)
}

// takeSeats gives ranks the rooms of the spares that are kept for them, with the payers that they had, and returns the ranks
// that have none, which follow those of their group to their domain. Rooms that a rank cannot use are given up.
func (b *Book) takeSeats(g *gang, missing []plan.Missing, rejected func(string) bool) (seated []plan.Assignment, rest []plan.Missing) {
	b.vacate(g, func(v *vacancy) bool { return v.seat() && !b.usable(g, v, rejected) })
	for _, m := range missing {
		at := slices.IndexFunc(g.vacant, func(v vacancy) bool { return v.seat() && v.index == m.Index })
		domain := ""
		if at >= 0 {
			domain = b.domainOf(g.vacant[at].node)
		}
		// A spare was placed in its group's domain, so that it serves when nobody knows any more which that is.
		if m.Spare || at < 0 || m.Domain != "" && m.Domain != unknown && domain != "" && m.Domain != domain {
			rest = append(rest, m)
			continue
		}
		v := &g.vacant[at]
		seated = append(seated, plan.Assignment{Part: m.Part, Group: g.demand.Group(m.Part), Node: v.node, Domain: domain,
			Payer: v.payer.key, Relation: v.payer.relation})
	}
	if g.demand.Confined || g.demand.OneDomain {
		g.gather(seated, rest)
	}
	return seated, rest
}

// gather has missing pods that are free to go to any domain go where others of their group are about to be.
func (g *gang) gather(seated []plan.Assignment, missing []plan.Missing) {
	for i := range missing {
		m := &missing[i]
		at := slices.IndexFunc(seated, func(a plan.Assignment) bool {
			return !m.Spare && (g.demand.OneDomain || a.Group == g.demand.Group(m.Part))
		})
		if at >= 0 && (m.Domain == "" || m.Domain == unknown && seated[at].Domain != "") {
			m.Domain = cmp.Or(seated[at].Domain, unknown)
		}
	}
}

// usable reports whether a rank could run where a spare was, at the cost of who is to pay.
func (b *Book) usable(g *gang, v *vacancy, rejected func(string) bool) bool {
	return b.accepts(g, v.node) && (rejected == nil || !rejected(v.node)) && v.payer.key.Budget != "" &&
		b.accounts.Reaches(v.payer.key, b.nodes[v.node].Labels)
}

func (b *Book) accepts(g *gang, name string) bool {
	node := b.nodes[name]
	return node != nil && b.serves(node) && g.excluded[name] == "" && tolerates(podOf(g.run), node)
}

// keptFor returns the pods of a running Run that are gone, by who pays for them: the payers go on paying for their
// replacements (R8), until all of them are placed. They pay for the owner that they paid for: one who comes after, by an edit of
// a Run that was requeued, has no claim to them.
func (b *Book) keptFor(g *gang, missing []plan.Missing) plan.Kept {
	kept := plan.Kept{}
	for _, m := range missing {
		if m.Spare {
			continue
		}
		charge, ok := g.kept[m.Index]
		if !ok {
			charge, ok = g.lastPaid(m)
		}
		if ok && charge.Owner == g.run.Spec.Owner {
			kept[charge.Payer] = budget.Kept{Pods: kept[charge.Payer].Pods + 1, Relation: charge.Relation}
		}
	}
	return kept
}

// notePayers remembers who pays for the rooms of lost ranks, which are given up before it is known where the ranks go.
func (b *Book) notePayers(g *gang) {
	for i := range g.vacant {
		v := &g.vacant[i]
		charge, ok := b.accounts.Charge(charged(v.pod))
		if !ok || v.seat() || v.index == anyRank {
			continue
		}
		g.keptBy(v.index, charge)
	}
}

// keptBy remembers who pays for a rank.
func (g *gang) keptBy(rank int, charge budget.Charge) {
	if g.kept == nil {
		g.kept = map[int]budget.Charge{}
	}
	g.kept[rank] = charge
}
