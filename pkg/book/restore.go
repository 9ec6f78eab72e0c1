package book

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// noteUnwound remembers a closed Lease that a process reads before it decides, if it may be of a Run that keeps its
// room: Runs are known by then, and there may be a million Leases.
func (k *keptRooms) noteUnwound(l *rqv1.Lease) {
	run := l.Spec.RunRef.UID
	g := k.roster.gangs[run]
	if g == nil || k.roster.open || l.Status.ClosureReason != rqv1.ClosedUnwound || l.Status.Ended == nil {
		return
	}
	if at, requeued := g.requeuedAt(); requeued && !l.Status.Ended.Time.Before(at) {
		k.unwound[run] = append(k.unwound[run], l)
	}
}

// restoreRooms has requeued Runs keep what a predecessor of this process kept for them, as far as nobody has it: what
// their old Leases hold whose pods are gone, and what those held that were closed since.
func (k *keptRooms) restoreRooms(now time.Time) {
	var requeued []*gang
	for g := range k.roster.living {
		if g.keepsRoom() && !g.opportunistic() {
			requeued = append(requeued, g)
		}
	}
	slices.SortFunc(requeued, byAge)
	for _, g := range requeued {
		open := slices.Collect(maps.Values(k.seats.ofRun[g.run.UID]))
		slices.SortFunc(open, func(x, y *lease) int { return strings.Compare(string(x.pod), string(y.pod)) })
		for _, l := range open {
			m := k.roster.members[l.pod]
			gone := m == nil || m.leaving && m.stage == finished
			if gone && g.old(l) && k.nodes.stands(l.node) && !g.requeue.seatsPart(l.part) {
				k.seats.hold(l.pod, "", 0, func(h *holding) { h.vacant, h.beside = true, cmp.Or(h.beside, g.asks(l.part, nil)) })
				g.requeue.places = append(g.requeue.places, place{pod: l.pod, index: placeOf(l.part), node: l.node,
					gpus: l.charge.GPUs, beside: k.seats.held[l.pod].beside, kept: true})
			}
		}
		k.restoreClosed(g, open, now)
	}
	clear(k.unwound)
}

// restoreClosed has a gang keep what its old Leases held that have been closed since it was requeued: of each of its
// pods the last one, without the room of spares and the money of pods that have new ones. What has been kept for too
// long already a predecessor may have given up although the status does not say so.
func (k *keptRooms) restoreClosed(g *gang, open []*lease, now time.Time) {
	before := len(g.requeue.places)
	var given []plan.Assignment
	former, again := map[rank.Part]bool{}, map[rank.Part]bool{}
	for _, l := range open {
		if g.old(l) {
			former[l.part] = true
		} else {
			again[l.part] = true
			given = append(given, plan.Assignment{Part: l.part, Payer: l.charge.Payer})
		}
	}
	at, _ := g.requeuedAt()
	closed := k.unwound[g.run.UID]
	slices.SortFunc(closed, func(x, y *rqv1.Lease) int { // of several of one rank the last first
		return cmp.Or(y.Spec.Start.Compare(x.Spec.Start.Time), strings.Compare(string(x.PodUID()), string(y.PodUID())))
	})
	for _, l := range closed {
		charge, node, ended := ChargeIn(l), l.Node(), l.Status.Ended.Time
		pod, part := l.PodUID(), rank.Held(l)
		if ended.Before(at) || !g.old(entryOf(l, charge)) || !k.nodes.stands(node) || k.seats.held[pod] != nil ||
			former[part] || g.requeue.seatsPart(part) {
			continue
		}
		former[part] = true
		charge.Start = ended
		g.requeue.until = latest(g.requeue.until, ended.Add(k.args.GangDeadline.Duration))
		p := place{pod: pod, index: placeOf(part), node: node, gpus: charge.GPUs, charge: charge}
		if part.Spare && again[part] {
			p.node, p.gpus = "", 0
		}
		g.requeue.places = append(g.requeue.places, p)
	}
	if over, _ := k.keptUntil(g); !now.Before(over.Add(k.args.GangDeadline.Duration / 2)) {
		g.requeue.places = g.requeue.places[:before]
	}
	slices.SortFunc(g.requeue.places, func(x, y place) int { return strings.Compare(string(x.pod), string(y.pod)) })
	k.keepAgain(g)
	for i := range g.requeue.places {
		if p := &g.requeue.places[i]; p.charge.GPUs > 0 {
			k.accounts.Open(charged(p.pod), p.charge)
		}
	}
	k.refundFor(g, given)
}
