package book

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// keptRooms is the room and the money that are kept for gangs which are to be planned again: of lost ranks, of requeued
// Runs, and of activations that are decided anew.
type keptRooms struct {
	mail     *mailbox
	accounts *budget.Accounts
	args     *config.Args
	fleet    *topology.Fleet
	nodes    *nodeTable
	roster   *roster
	waiting  *waitlist
	seats    *seating

	unwound map[types.UID][]*rqv1.Lease // closed Leases by Run, until this process decides
}

// keepFor keeps what is free of some places for a gang that has had them, until an instant.
func (k *keptRooms) keepFor(g *gang, places []resolver.Holding, until time.Time) {
	k.giveUpRoom(g)
	g.room.until = until
	k.roster.classes.roomy[g] = true
	for i, p := range places {
		if node := k.nodes.byName[p.Node]; node == nil || !k.nodes.serves(node) || k.nodes.freeOn(p.Node) < p.GPUs {
			continue
		}
		uid := types.UID(fmt.Sprintf("room/%s/%d", g.run.UID, i))
		k.seats.hold(uid, p.Node, p.GPUs, func(h *holding) { h.vacant, h.beside = true, p.Beside })
		g.room.held = append(g.room.held, uid)
		g.room.gpus += p.GPUs
	}
	k.waiting.file(g)
}

// giveUpRoom lets others have what was kept for a gang.
func (k *keptRooms) giveUpRoom(g *gang) {
	k.takeBack(g)
	for _, uid := range g.room.held {
		k.seats.hold(uid, "", 0, func(h *holding) { h.vacant = false })
	}
	g.room = room{}
	delete(k.roster.classes.roomy, g)
	k.waiting.file(g)
}

// lend has a gang be planned as if what is kept for it were free, until what it returns is called. Nobody is woken by
// it. The room of an activation is given up if the gang has its places by then, or is not going to be decided anew.
func (k *keptRooms) lend(g *gang) (back func()) {
	if g.lent != nil || len(g.room.held) == 0 && len(g.requeue.places) == 0 ||
		g.room.moves && g.firstRank() == nil { // it is for a rank, and none needs it yet
		return func() {}
	}
	g.lent = plan.NewFork(k.fleet, k.accounts)
	for _, uid := range g.room.held {
		h := k.seats.held[uid]
		g.lent.Give(h.node, h.gpus, h.beside)
	}
	for i := range g.requeue.places {
		k.lendPlace(g, &g.requeue.places[i])
	}
	return func() {
		k.takeBack(g)
		done := g.underWay() || g.vain()
		if g.room.moves && g.started() {
			done = g.firstRank() == nil // others of its ranks are always under way
		}
		if done {
			k.giveUpRoom(g)
		}
	}
}

// lendPlace has what is kept of one place of a requeued gang be free. The rank whose it was may have its payer, as long
// as the gang's time is not over: from then on what others are owed comes first.
func (k *keptRooms) lendPlace(g *gang, p *place) {
	charge, paid := g.lent.Void(charged(p.pod))
	if paid {
		p.charge = charge
	}
	if h := k.seats.held[p.pod]; p.kept && h != nil && !h.outlived() {
		g.lent.Give(p.node, p.gpus, h.beside)
	}
	if p.index != anyRank && paid && !g.requeue.lapsed {
		g.keptBy(p.index, charge)
	}
}

// takeBack has what is kept for a gang be held again.
func (k *keptRooms) takeBack(g *gang) {
	if g.lent != nil {
		g.lent.Revert()
		g.lent = nil
	}
}

// addPlace keeps the room of an old pod that is gone, if its node stands.
func (k *keptRooms) addPlace(m *member) {
	h := k.seats.held[m.pod.UID]
	if h == nil || !k.nodes.stands(h.node) || m.gang.requeue.has(m.pod.UID) || m.gang.requeue.seatsPart(m.part) {
		return
	}
	p := place{pod: m.pod.UID, index: placeOf(m.part), node: h.node, gpus: h.gpus, beside: h.beside, kept: true}
	k.seats.hold(p.pod, "", 0, func(h *holding) { h.vacant = true })
	m.gang.requeue.places = append(m.gang.requeue.places, p)
}

// keepRoom keeps the room and the money of a pod that is lost, once the pod's Lease is closed: otherwise whoever waits
// would take it first, and the Run would end for want of it. The room of a rank is its replacement's; that of a pod
// which makes room for ranks that have none is theirs.
func (k *keptRooms) keepRoom(m *member) {
	if m.gang.keepsRoom() {
		k.addPlace(m)
		return
	}
	index := m.part.Index
	if m.surplus() {
		index = anyRank
	}
	k.seats.hold(m.pod.UID, "", 0, func(h *holding) { h.vacant = true })
	v := vacancy{pod: m.pod.UID, index: index, since: k.seats.heldSince(m)}
	stays := m.gang.run.Spec.Theirs() && k.nodes.stands(m.node) || k.nodes.outOfService(m.gang, index, m.node)
	if index != anyRank && stays && !m.gang.hasOwn(index) {
		v.node, v.payer, v.own = m.node, m.payer, true // the rank goes on where it was (R42), once that serves again
	}
	m.gang.vacant = append(m.gang.vacant, v)
	if m.gang.aside[index] { // its Lease was closed before the pod was gone
		k.seats.giveAside(m.gang, index)
		k.accounts.Open(charged(m.pod.UID), m.gang.kept[index])
	}
	k.waiting.file(m.gang)
}

// giveRoom frees the room of a gang that has been given places, and as much of the money that is kept for it as the
// same payers pay for these: a rank's own first, then that of a place which was to be any rank's, then that of another
// rank. All other stays its own until it runs: the places may have to be given back.
func (k *keptRooms) giveRoom(g *gang, places []plan.Assignment) {
	k.emptyRoom(g)
	if len(g.requeue.places) > 0 {
		k.refundFor(g, places)
	}
}

// emptyRoom gives up the room that is kept for a gang, and none of the money.
func (k *keptRooms) emptyRoom(g *gang) {
	k.takeBack(g)
	for i := range g.requeue.places {
		k.emptyPlace(&g.requeue.places[i])
	}
}

// refundFor frees as much of the money that is kept for a gang as the same payers pay for places that it has.
func (k *keptRooms) refundFor(g *gang, places []plan.Assignment) {
	rest := slices.DeleteFunc(slices.Clone(places), func(a plan.Assignment) bool {
		return !a.Spare && k.refundOne(g, a.Payer, func(p *place) bool { return p.index == a.Index })
	})
	for _, a := range rest {
		if !k.refundOne(g, a.Payer, func(p *place) bool { return p.index == anyRank }) {
			k.refundOne(g, a.Payer, func(*place) bool { return true })
		}
	}
}

// refundOne frees the money of one place that somebody pays for, and reports whether there is such a one.
func (k *keptRooms) refundOne(g *gang, payer budget.Key, which func(*place) bool) bool {
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		if charge, paid := k.accounts.Charge(charged(p.pod)); paid && charge.Payer == payer && which(p) {
			return k.refund(p)
		}
	}
	return false
}

// emptyPlace lets others have the room of a place.
func (k *keptRooms) emptyPlace(p *place) {
	if p.kept && p.gpus > 0 {
		k.seats.hold(p.pod, "", 0, func(h *holding) { h.vacant = false })
	}
	p.kept = false
}

// refund lets others have the money of a place, and reports whether any was kept there.
func (k *keptRooms) refund(p *place) bool {
	charge, paid := k.accounts.Void(charged(p.pod))
	if paid {
		p.charge = charge
		k.waiting.wakeBudget(charge.Payer.Budget)
	}
	return paid
}

// dropRoom gives it up for good.
func (k *keptRooms) dropRoom(g *gang) {
	k.emptyRoom(g)
	for i := range g.requeue.places {
		k.refund(&g.requeue.places[i])
	}
	g.requeue.places, g.requeue.until = nil, time.Time{}
}

// keepAgain keeps those places that the gang does not have, as far as they are free, and of ranks the money at least,
// which is never given up in between.
func (k *keptRooms) keepAgain(g *gang) {
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		taken := p.gpus > 0 && (!k.nodes.stands(p.node) || k.nodes.freeOn(p.node) < p.gpus)
		m := g.rankAt(p.index)
		switch {
		case m != nil && m.holds(): // its rank has what it needs
			continue
		case p.kept, p.gpus > 0 && k.seats.held[p.pod] != nil, taken && p.index == anyRank:
			continue
		case taken:
			p.node, p.gpus = "", 0
		}
		p.kept = true
		if p.gpus > 0 {
			p.beside = g.asks(rank.Part{Index: p.index}, p.beside)
			k.seats.hold(p.pod, p.node, p.gpus, func(h *holding) { h.vacant, h.beside = true, p.beside })
		}
	}
}

// retake keeps the room again that a gang has given back with its places: it has not started yet.
func (k *keptRooms) retake(g *gang) {
	if len(g.requeue.places) > 0 && g.keepsRoom() && g.active.assigned+g.spares.assigned == 0 {
		k.keepAgain(g)
	}
}

// regardRoom follows what a Run's status says of its room. What was kept for the ranks that it had lost while it ran is
// part of what it keeps, and so is the money of those whose room was on a lost node.
func (k *keptRooms) regardRoom(g *gang) {
	if g.room.moves && !g.started() {
		k.giveUpRoom(g) // no rank of it moves any more
	}
	switch {
	case g.started():
		k.dropRoom(g)
		g.requeue = requeue{}
		return
	case !g.keepsMoney():
		k.seats.giveAsideFrom(g, 0)
		k.seats.vacateAll(g)
		k.dropRoom(g)
		g.kept, g.requeue.lapsed = nil, false
		return
	case g.requeue.lapsed:
		return
	}
	vacant := g.vacant
	g.vacant = nil
	for i := range vacant {
		v := &vacant[i]
		if h := k.seats.held[v.pod]; h != nil && k.nodes.stands(h.node) {
			g.requeue.places = append(g.requeue.places, place{pod: v.pod, index: v.index, node: h.node, gpus: h.gpus,
				beside: h.beside, kept: true})
			delete(g.kept, v.index)
		} else {
			g.vacant = append(g.vacant, *v)
		}
	}
	k.seats.notePayers(g)
	k.seats.vacateAll(g)
	k.seats.giveAsideFrom(g, 0) // it is kept with the places from now on
	for _, rank := range slices.Sorted(maps.Keys(g.kept)) {
		if g.requeue.seats(rank) || len(k.seats.payers(g, rank)) > 0 { // its Lease may be being written
			continue
		}
		p := place{pod: moneyOf(g, rank), index: rank, charge: g.kept[rank], kept: true}
		k.accounts.Open(charged(p.pod), p.charge)
		g.requeue.places = append(g.requeue.places, p)
	}
}

// oldPods returns the old pods of a requeued gang that have not ended, but for those that should be long gone.
func (k *keptRooms) oldPods(g *gang, now time.Time) []*member {
	var out []*member
	for _, s := range [...]*squad{&g.active, &g.spares} {
		for _, m := range s.members {
			if m != nil && m.holds() && g.old(m.had) && !m.hangs(now) {
				out = append(out, m)
			}
		}
	}
	return out
}

// goes reports whether an old pod of a requeued gang is there that has not ended, or the Lease of one is open. What
// should be long gone is waited for no more: nobody knows when it goes (R37).
func (k *keptRooms) goes(g *gang, now time.Time) bool {
	for i := range g.requeue.places {
		h := k.seats.held[g.requeue.places[i].pod]
		if h != nil && (h.leased || h.bound) && (h.until.IsZero() || now.Before(h.until.Add(overstay))) {
			return true
		}
	}
	return len(k.oldPods(g, now)) > 0
}

// keptUntil returns until when room is kept for a requeued Run; false for one that is not.
func (k *keptRooms) keptUntil(g *gang) (time.Time, bool) {
	at, requeued := g.requeuedAt()
	return latest(g.requeue.until, at.Add(k.args.GangDeadline.Duration)), requeued
}

// nextLapse tells when the time of a requeued Run may be over. While old pods of it end, that is looked at every now
// and then.
func (k *keptRooms) nextLapse(e *earliest, now time.Time) {
	for g := range k.roster.classes.requeued {
		over, requeued := k.keptUntil(g)
		switch {
		case !requeued || g.requeue.lapsed && len(g.requeue.places) == 0:
		case g.requeue.lapsed:
			e.by(over.Add(k.args.GangDeadline.Duration))
		case k.goes(g, now):
			e.by(now.Add(sweepPeriod))
		default:
			e.by(over)
		}
	}
	k.nextForgone(e, now)
}

// lapse ends what is kept for Runs that have not started again in time: they wait as any other from then on. Others
// have their room at once, and their money once their status says so, or cannot be made to for so long that whoever
// comes next does not keep it again.
func (k *keptRooms) lapse(now time.Time) {
	k.forgo(now)
	for g := range k.roster.classes.requeued {
		over, requeued := k.keptUntil(g)
		switch {
		case !requeued, now.Before(over):
			continue
		case g.requeue.lapsed && len(g.requeue.places) > 0 && !now.Before(over.Add(k.args.GangDeadline.Duration)):
			k.dropRoom(g)
			continue
		case g.requeue.lapsed, k.goes(g, now):
			continue
		}
		k.emptyRoom(g)
		g.kept, g.requeue.lapsed = nil, true
		k.waiting.file(g)
		k.mail.reconcile(keyOf(g.run), lane.Date)
	}
}
