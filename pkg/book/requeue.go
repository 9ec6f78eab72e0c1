package book

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// requeue is what a Run that was requeued because of a node's loss keeps of what it held (R22): younger Runs that wait would have
// it before the Run's new pods are there.
type requeue struct {
	places []place
	// until is gangDeadline after the last of the old Leases was closed; zero while none has been.
	until time.Time
	// lapsed says that the Run did not start in time, until its status says so; open that a plan for the Run looks at the
	// fleet, to which its places are free.
	lapsed, open bool
}

// place is the room of one old pod, kept under its name, or no more than the money of a rank whose node is lost.
type place struct {
	pod    types.UID
	index  int // of the rank; anyRank for a spare's
	node   string
	gpus   int
	charge budget.Charge
	kept   bool // else the gang has been given it
}

// requeuedAt returns when a Run that waits was requeued because of a node's loss, as its status says in whole seconds.
func (g *gang) requeuedAt() (time.Time, bool) {
	if g.run == nil || g.run.Status.Phase != rqv1.RunPending {
		return time.Time{}, false
	}
	c := meta.FindStatusCondition(g.run.Status.Conditions, rqv1.ConditionRoomKept)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// keepsRoom reports whether the gang's old room is still its own.
func (g *gang) keepsRoom() bool {
	_, requeued := g.requeuedAt()
	return requeued && !g.requeue.lapsed
}

// old reports whether what was held from an instant on was held before the gang was requeued.
func (g *gang) old(since time.Time) bool {
	at, ok := g.requeuedAt()
	return ok && since.Before(at.Add(time.Second))
}

// regardRoom follows what a Run's status says of its room. What was kept for the ranks that it had lost while it ran is part of
// what it keeps, and so is the money of those whose room was on a lost node.
func (b *Book) regardRoom(g *gang) {
	switch {
	case g.started():
		b.dropRoom(g)
		g.requeue = requeue{}
		return
	case !g.keepsRoom():
		b.vacateAll(g)
		b.dropRoom(g)
		_, requeued := g.requeuedAt()
		g.kept, g.requeue.lapsed = nil, requeued && g.requeue.lapsed
		return
	}
	vacant := g.vacant
	g.vacant = nil
	for i := range vacant {
		v := &vacant[i]
		if h := b.held[v.pod]; h != nil && b.stands(h.node) {
			g.requeue.places = append(g.requeue.places, place{pod: v.pod, index: v.index, node: h.node, gpus: h.gpus, kept: true})
			delete(g.kept, v.index)
		} else {
			g.vacant = append(g.vacant, *v)
		}
	}
	b.notePayers(g)
	b.vacateAll(g)
	for _, rank := range slices.Sorted(maps.Keys(g.kept)) {
		if p := (place{pod: types.UID(fmt.Sprintf("%s/%d", g.run.UID, rank)), index: rank, charge: g.kept[rank], kept: true}); !g.has(p.pod) {
			b.accounts.Open(charged(p.pod), p.charge)
			g.requeue.places = append(g.requeue.places, p)
		}
	}
}

// has reports whether a place is among those that a gang keeps, or kept.
func (g *gang) has(pod types.UID) bool {
	return slices.ContainsFunc(g.requeue.places, func(p place) bool { return p.pod == pod })
}

// addPlace keeps the room of an old pod that is gone, if its node stands.
func (b *Book) addPlace(m *member) {
	h := b.held[m.pod.UID]
	if h == nil || !b.stands(h.node) || m.gang.has(m.pod.UID) {
		return
	}
	p := place{pod: m.pod.UID, index: m.part.Index, node: h.node, gpus: h.gpus, kept: true}
	if m.part.Spare {
		p.index = anyRank
	}
	b.hold(p.pod, "", 0, func(h *holding) { h.vacant = true })
	m.gang.requeue.places = append(m.gang.requeue.places, p)
}

// noteEnd notes when the last of the old Leases of a gang was closed: from then on its time runs.
func (b *Book) noteEnd(l *lease, ended time.Time) {
	if g := b.gangs[types.UID(l.charge.Run)]; g != nil && g.keepsRoom() && g.old(l.charge.Start) {
		g.requeue.until = latest(g.requeue.until, ended.Add(b.args.GangDeadline.Duration))
	}
}

// openRoom has the fleet and the Budgets look as if the gang's room were free, for a plan of its own, until closeRoom. Nobody is
// woken by it.
func (b *Book) openRoom(g *gang) {
	if g.requeue.open {
		return
	}
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		if !p.kept {
			continue
		}
		if charge, ok := b.accounts.Void(charged(p.pod)); ok {
			p.charge = charge
		}
		if p.gpus > 0 {
			b.fleet.Give(p.node, p.gpus)
		}
		if p.index != anyRank && p.charge.GPUs > 0 {
			g.keptBy(p.index, p.charge)
		}
		g.requeue.open = true
	}
}

// closeRoom takes the room back.
func (b *Book) closeRoom(g *gang) {
	if !g.requeue.open {
		return
	}
	g.requeue.open = false
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		if !p.kept {
			continue
		}
		if p.charge.GPUs > 0 {
			b.accounts.Open(charged(p.pod), p.charge)
		}
		if p.gpus > 0 {
			b.fleet.Take(p.node, p.gpus)
		}
	}
}

// giveRoom frees the room: the gang has its places, or its time is over.
func (b *Book) giveRoom(g *gang) {
	b.closeRoom(g)
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		if !p.kept {
			continue
		}
		p.kept = false
		if charge, ok := b.accounts.Void(charged(p.pod)); ok {
			p.charge = charge
			b.wakeBudget(charge.Payer.Budget)
		}
		if p.gpus > 0 {
			b.hold(p.pod, "", 0, func(h *holding) { h.vacant = false })
		}
	}
}

// dropRoom gives it up for good.
func (b *Book) dropRoom(g *gang) {
	if len(g.requeue.places) > 0 {
		b.giveRoom(g)
	}
	g.requeue.places, g.requeue.until = nil, time.Time{}
}

// retake keeps the room again that a gang has given back with its places: it has not started yet.
func (b *Book) retake(g *gang) {
	if len(g.requeue.places) > 0 && g.keepsRoom() && g.active.assigned+g.spares.assigned == 0 {
		b.keepAgain(g)
	}
}

// keepAgain keeps those places that the gang does not have, as far as they are free.
func (b *Book) keepAgain(g *gang) {
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		if p.kept || p.gpus > 0 && (!b.stands(p.node) || b.freeOn(p.node) < p.gpus || b.held[p.pod] != nil) {
			continue
		}
		p.kept = true
		if p.gpus > 0 {
			b.hold(p.pod, p.node, p.gpus, func(h *holding) { h.vacant = true })
		}
		if p.charge.GPUs > 0 {
			b.accounts.Open(charged(p.pod), p.charge)
		}
	}
}

// keptGPUs returns how many GPUs are kept for a gang that was requeued.
func (g *gang) keptGPUs() int {
	sum := 0
	for i := range g.requeue.places {
		if g.requeue.places[i].kept {
			sum += g.requeue.places[i].gpus
		}
	}
	return sum
}

// Lapse ends what is kept for Runs that have not started again in time: they wait as any other from then on.
func (b *Book) Lapse(now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	for _, g := range b.gangs {
		at, requeued := g.requeuedAt()
		if !b.open || !requeued || g.requeue.lapsed || b.goes(g, now) {
			continue
		}
		if now.Before(latest(g.requeue.until, at.Add(b.args.GangDeadline.Duration))) {
			continue
		}
		b.dropRoom(g)
		g.kept, g.requeue.lapsed = nil, true
		b.reconcile(keyOf(g.run))
	}
}

// goes reports whether an old pod of a requeued gang is there that has not ended, or the Lease of one is open. What should be long
// gone is waited for no more: nobody knows when it goes (R37).
func (b *Book) goes(g *gang, now time.Time) bool {
	for i := range g.requeue.places {
		h := b.held[g.requeue.places[i].pod]
		if h != nil && (h.leased || h.bound) && (h.until.IsZero() || now.Before(h.until.Add(overstay))) {
			return true
		}
	}
	return len(b.oldPods(g, now)) > 0
}

// oldPods returns the old pods of a requeued gang that have not ended, but for those that should be long gone.
func (b *Book) oldPods(g *gang, now time.Time) []*member {
	var out []*member
	for _, s := range [...]*squad{&g.active, &g.spares} {
		for _, m := range s.members {
			if m != nil && m.stage >= leased && m.stage < finished && g.old(b.heldSince(m)) && !m.hangs(now) {
				out = append(out, m)
			}
		}
	}
	return out
}

// lapses returns what Runs that were requeued give back when their time is over, unless they start before. While old pods end it is
// told by what these may take at most, and is about what they hold as well.
func (b *Book) lapses(g *gang, now time.Time) *forecast.Release {
	if len(g.requeue.places) == 0 && !g.underWay() || !g.keepsRoom() || g.opportunistic() {
		return nil
	}
	at, _ := g.requeuedAt()
	r := &forecast.Release{At: latest(g.requeue.until, at.Add(b.args.GangDeadline.Duration))}
	for _, m := range b.oldPods(g, now) {
		until := m.pod.DeletionTimestamp
		if until == nil {
			until = &metav1.Time{Time: now.Add(b.graceOf(m.pod))}
		}
		r.At = latest(r.At, until.Add(b.args.GangDeadline.Duration))
		if b.stands(m.node) {
			r.Holds = append(r.Holds, g.holding(m))
			if l := leaseName(m.pod); b.leases[l] != nil {
				r.Leases = append(r.Leases, l.String())
			}
		}
	}
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		if !p.kept {
			continue
		}
		r.Leases = append(r.Leases, charged(p.pod))
		if p.gpus > 0 {
			r.Holds = append(r.Holds, resolver.Holding{Node: p.node, GPUs: p.gpus})
		}
	}
	if r.At = latest(r.At, now.Add(soon)); len(r.Holds)+len(r.Leases) == 0 {
		return nil
	}
	return r
}
