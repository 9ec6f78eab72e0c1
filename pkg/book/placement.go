package book

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// placement gives gangs their places and takes them back, and has shards give way.
type placement struct {
	accounts *budget.Accounts
	mail     *mailbox
	nodes    *nodeTable
	roster   *roster
	waiting  *waitlist
	cuts     *cutTable
	agenda   *agenda
	seats    *seating
	kept     *keptRooms

	// the shards that have been told to go, until their Leases are closed, and why
	reclaimed map[types.UID]rqv1.ClosureReason
}

// assume takes the GPUs and the money of assignments.
func (p *placement) assume(g *gang, assignments []plan.Assignment, now time.Time) {
	p.kept.giveRoom(g, assignments)
	for _, a := range assignments {
		if g.late() && !a.Spare && g.rankAt(a.Index) == nil {
			if p.nodes.freeOn(a.Node) >= g.demand.GPUsPerPod { // else others are to leave it
				p.keepPlace(g, a, now)
			}
			continue
		}
		m := p.memberFor(g, a.Part)
		p.seats.hold(m.pod.UID, a.Node, g.demand.GPUsPerPod, func(h *holding) {
			h.planned, h.spare, h.shard, h.run = true, a.Spare, g.opportunistic(), g.run.UID
		})
		p.seats.advance(m, assigned, a.Node, payer{a.Payer, a.Relation})
		p.accounts.Open(p.seats.leaseOf(m.pod).String(), p.seats.chargeOf(m, now))
		if !a.Spare && g.aside[a.Index] && g.kept[a.Index].Payer == a.Payer {
			p.seats.giveAside(g, a.Index)
		}
		for _, other := range p.agenda.intended[a.Node] {
			other.seen = -1 // its promise, and whom it threatens, is not what it was
		}
	}
	if !g.check.pending {
		p.makeRoom(g)
	}
	g.denial.delays, g.denial.moves, g.madeBy = "", false, now.Add(p.nodes.args.GangDeadline.Duration)
	if g.awaitsPods() && g.musters() {
		p.mail.reconcile(keyOf(g.run), lane.Begin)
	}
}

// makeRoom has shards leave that are in the way of a gang which has been given places, once all of its pods have been
// made: the API server may not take them. Spares run nothing.
func (p *placement) makeRoom(g *gang) {
	if g.opportunistic() {
		return
	}
	waited := g.crowds
	g.crowds = g.awaitsPods() && g.touches(func(m *member) bool {
		return !m.part.Spare && m.stage == assigned && p.overfull(m.node)
	})
	if g.crowds {
		return
	}
	for _, m := range g.active.members {
		if m == nil || m.stage != assigned || len(p.seats.shards[m.node]) == 0 {
			continue
		}
		reason := rqv1.ClosedReclaimed
		if r, ok := rank.ReplacementOf(m.pod); ok && r.Node == m.node {
			reason = rqv1.ClosedReclaimedBySpare
		}
		p.reclaim(m.node, reason, g)
	}
	if waited && g.awaiting == 0 {
		p.waiting.proceed(g) // they have left by themselves
	}
}

// release takes a member's assignment back, if neither the ledger nor the node holds it. While its Lease is being
// written the GPUs and the charge stay taken: only the outcome of the write says whether they are.
func (p *placement) release(m *member) {
	name := p.seats.leaseOf(m.pod)
	if m.stage > unplaced && m.stage != writing && p.seats.leases[name] == nil {
		if charge, paid := p.accounts.Void(name.String()); paid {
			p.seats.keepMoney(m.gang, charge)
		}
		p.waiting.wakeBudget(m.payer.key.Budget)
		p.seats.hold(m.pod.UID, "", 0, func(h *holding) { h.planned = false })
		if m.stage == reserved && !m.extra() {
			p.waiting.noteGiven(m.node, m.came) // kube-scheduler counted it there
		}
	}
	p.seats.advance(m, unplaced, "", payer{})
	if !m.part.Spare {
		p.seats.setAside(m.gang, m.part.Index)
	}
	if m.standIn {
		p.dismiss(m)
		return
	}
	if p.roster.open {
		p.claimSeat(m)
	}
}

// claimSeat keeps the room of the spare that a pod's record names for that pod alone, from before the spare gives it up
// until the pod has it. Where that is and who pays is what the ledger says. A rank has one seat: that of its deleted
// predecessor is given up.
func (p *placement) claimSeat(m *member) {
	g := m.gang
	r, ok := rank.ReplacementOf(m.pod)
	if !ok || m.part.Spare || m.stage != unplaced || !g.started() || g.suspended() || g.shape != nil || m.surplus() ||
		m.joins() || m.belated() || g.turnedBy()[r.Node] != "" || g.seats(r.SpareUID) {
		return
	}
	spare := g.spareLease(r)
	if spare == nil {
		return
	}
	if m := p.roster.members[r.SpareUID]; m != nil && (m.gang != g || !m.part.Spare || m.doomed()) {
		return
	}
	if h := p.seats.held[r.SpareUID]; h != nil && (h.node != r.Node || len(h.awaitedBy) > 0) ||
		!p.seats.hasSeat(h, r.Node, g.demand.GPUsPerPod) {
		return // the record is of no use any more, or a shard stays that does not go
	}
	p.seats.vacate(g, func(v *vacancy) bool { return v.seat() && v.index == m.part.Index })
	asks := p.nodes.asks
	p.seats.hold(r.SpareUID, r.Node, g.demand.GPUsPerPod, func(h *holding) {
		h.vacant, h.asks, h.spare, h.run = true, asks, true, g.run.UID
		h.beside = m.beside // the spare's pod may be gone
	})
	g.vacant = append(g.vacant, vacancy{pod: r.SpareUID, index: m.part.Index, node: r.Node,
		payer: g.paysForSeat(m.part, r, spare), asks: asks, since: spare.held})
	p.waiting.file(g)
	if !asks {
		p.reclaim(r.Node, rqv1.ClosedReclaimedBySpare, nil) // they leave while the ledger follows
	}
}

// claimSeats has all ranks whose records name spares claim their rooms, those of older Runs first.
func (p *placement) claimSeats() {
	var started []*gang
	for g := range p.roster.living {
		if g.started() {
			started = append(started, g)
		}
	}
	slices.SortFunc(started, byAge)
	for _, g := range started {
		for _, m := range g.active.members {
			if m != nil {
				p.claimSeat(m)
			}
		}
	}
}

// reclaim has shards leave a node until others have what they have been given there. A gang that is given waits for all
// that leave; it may be nil. One that has no Lease yet leaves at once.
func (p *placement) reclaim(node string, reason rqv1.ClosureReason, g *gang) {
	if !p.overfull(node) {
		return
	}
	pods := slices.Sorted(maps.Keys(p.seats.shards[node]))
	for _, pod := range p.goingNow(node) {
		p.evict(p.roster.members[pod], reason)
	}
	if g == nil || !p.overfull(node) {
		return
	}
	for _, pod := range pods {
		if h := p.seats.held[pod]; h != nil && p.givesWay(pod) {
			p.seats.await(pod, g)
		}
	}
}

// goingNow returns the shards that are to leave a node now. Nobody leaves yet for gangs about whose places other rules
// are being asked or whose pods are being made.
func (p *placement) goingNow(node string) (out []types.UID) {
	p.seats.inBothViews(node, p.unsettled(), func() {
		if going := p.goingFrom(node); len(going) > len(out) {
			out = going
		}
	})
	return out
}

// overfull reports whether the shards on a node hold more than there is for them.
func (p *placement) overfull(node string) bool {
	defer p.seats.withoutUntaken(node)()
	return p.seats.shardGPUs(node) > p.seats.roomFor(node) ||
		p.seats.crowded(node, slices.Collect(maps.Keys(p.seats.shards[node])))
}

// goingFrom returns the shards that are to leave a node beside those that are on their way out: the youngest.
func (p *placement) goingFrom(node string) []types.UID {
	defer p.seats.withoutUntaken(node)()
	over := p.seats.shardGPUs(node) - p.seats.roomFor(node)
	pods := slices.Sorted(maps.Keys(p.seats.shards[node]))
	shards := make([]plan.Shard, len(pods))
	for i, pod := range pods {
		shards[i] = plan.Shard{Key: string(pod), GPUs: p.seats.shards[node][pod], Leaving: p.givesWay(pod)}
		if m := p.roster.members[pod]; m != nil {
			shards[i].Key, shards[i].Since = keyOf(m.pod).String(), p.seats.heldSince(m)
		}
	}
	going := plan.Reclaim(shards, over)
	for ; p.seats.crowded(node, p.remaining(pods, going)) && over < p.seats.shardGPUs(node); over++ {
		going = plan.Reclaim(shards, over+1)
	}
	out := make([]types.UID, len(going))
	for i, at := range going {
		out[i] = pods[at]
	}
	return out
}

// remaining returns those of a node's shards that are neither going, given as indexes, nor on their way out.
func (p *placement) remaining(shards []types.UID, going []int) []types.UID {
	var out []types.UID
	for i, pod := range shards {
		if !slices.Contains(going, i) && !p.givesWay(pod) {
			out = append(out, pod)
		}
	}
	return out
}

// evict has a shard leave its node.
func (p *placement) evict(m *member, reason rqv1.ClosureReason) {
	if m.stage < writing {
		p.release(m)
		return
	}
	p.reclaimed[m.pod.UID] = reason
	if m.gang.run != nil {
		p.mail.reconcile(keyOf(m.gang.run), lane.Cut)
	}
}

// givesWay reports whether a shard is on its way out: it has been told to go, for others or for good, or it is gone and
// its Lease is open.
func (p *placement) givesWay(pod types.UID) bool {
	m := p.roster.members[pod]
	return m == nil || m.leaving || p.reclaimed[pod] != ""
}

// drop takes a member out of its gang.
func (p *placement) drop(m *member) {
	p.release(m)
	delete(p.roster.members, m.pod.UID)
	delete(m.gang.moving, m.pod.UID)
	m.gang.dropBan(m.pod.UID)
	s := m.gang.squad(m.part)
	s.count(m, -1)
	s.members[m.part.Index] = nil
	s.present--
	p.waiting.passOn(m.gang)
	p.seats.leaveSeat(m)
}

// resize changes the width of a gang. Pods beyond it hold nothing but what the ledger or their node says.
func (p *placement) resize(g *gang, d plan.Demand) {
	// It may have been planned at that width already, and known since who had paid for more.
	maps.DeleteFunc(g.kept, func(rank int, _ budget.Charge) bool { return rank >= d.Pods() })
	if g.demand == d {
		return
	}
	before, beside := g.demand.Pods(), g.demand.Beside
	g.demand = d
	for _, m := range g.spares.members {
		if m != nil && beside != d.Beside {
			p.seats.holdAnew(m) // it holds what ranks ask for
		}
	}
	p.resizeSquad(&g.active, d.Pods())
	p.resizeSquad(&g.spares, d.Spares())
	p.seats.vacate(g, from(d.Pods()))
	p.seats.giveAsideFrom(g, d.Pods())
	if before > 0 && before != d.Pods() && g.run != nil {
		p.mail.reconcile(keyOf(g.run), lane.Begin) // it may have too many pods now, or too few
	}
}

func (p *placement) resizeSquad(s *squad, size int) {
	s.resize(size)
	for _, m := range s.members[min(size, len(s.members)):] {
		if m == nil || m.stage != assigned && m.stage != reserved {
			continue
		}
		if m.stage == reserved {
			p.mail.reject(m.pod.UID)
		}
		p.release(m)
	}
}

// unwind takes back the assignments of every member that has no Lease yet, but for the spares of a Run that has
// started. Those that wait at the barrier are rejected. A Run that has not started asks for its total again.
func (p *placement) unwind(g *gang) {
	g.committed, g.crowds = false, false
	p.waiting.passOn(g)
	p.seats.leaveOff(g)
	for m := range g.all() {
		if m.extra() || (m.stage != assigned && m.stage != reserved) {
			continue
		}
		if m.stage == reserved {
			p.mail.reject(m.pod.UID)
		}
		p.release(m)
	}
	p.kept.retake(g)
	p.resize(g, g.granted())
}

// giveBack takes back what a member's gang was assigned, or what the member was if it concerns nobody else.
func (p *placement) giveBack(m *member) {
	if !m.extra() {
		p.unwind(m.gang)
	} else if m.stage == assigned || m.stage == reserved {
		p.release(m)
	}
}

// reconcileOn has the Runs looked at that have pods or Leases on some nodes. Places on those that do not stand, which
// no Lease holds yet, are taken back, each with the rest of its gang's: a gang that took them would start with a pod
// missing.
func (p *placement) reconcileOn(nodes map[string]bool) {
	concerned := map[types.NamespacedName]bool{}
	var adrift []*member
	for g := range p.roster.living {
		for _, m := range slices.Concat(g.active.members, g.spares.members) {
			if m == nil || !nodes[m.node] {
				continue
			}
			if g.run != nil {
				concerned[keyOf(g.run)] = true
			}
			if (m.stage == assigned || m.stage == reserved) && !p.nodes.stands(m.node) {
				adrift = append(adrift, m)
			}
		}
	}
	for _, l := range p.seats.leases {
		if nodes[l.node] {
			concerned[l.run] = true // its pod may be gone
		}
	}
	slices.SortFunc(adrift, func(x, y *member) int { return cmp.Compare(x.pod.UID, y.pod.UID) })
	for _, m := range adrift {
		if m.stage == reserved && m.extra() {
			p.mail.reject(m.pod.UID)
		}
		p.giveBack(m) // nothing, if its gang's places have been taken back by now
		p.waiting.wake(m.gang)
	}
	for run := range concerned {
		p.mail.reconcile(run, lane.Cut)
	}
}

// memberFor returns the member of a part, with a stand-in where its pod has not been made.
func (p *placement) memberFor(g *gang, part rank.Part) *member {
	s := g.squad(part)
	if m := s.memberAt(part.Index); m != nil {
		return m
	}
	for len(s.members) <= part.Index {
		s.members = append(s.members, nil)
	}
	m := &member{gang: g, part: part, pod: g.standInFor(part), standIn: true, beside: g.asks(part, nil)}
	s.members[part.Index] = m
	s.count(m, +1)
	s.present++
	p.roster.members[m.pod.UID] = m
	g.standIns++
	p.roster.classes.mustering[g] = true
	return m
}
