package book

import (
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// noteUnwound remembers a closed Lease that a process reads before it decides: it may be of a Run that keeps its room.
func (b *Book) noteUnwound(l *rqv1.Lease) {
	if run := l.Spec.RunRef.UID; !b.open && l.Status.ClosureReason == rqv1.ClosedUnwound && l.Status.Ended != nil {
		b.unwound[run] = append(b.unwound[run], l)
	}
}

// restoreRooms has requeued Runs keep what a predecessor of this process kept for them, as far as nobody has it: what their old
// Leases hold whose pods are gone, and what those held that were closed since.
func (b *Book) restoreRooms() {
	var requeued []*gang
	for _, g := range b.gangs {
		if g.keepsRoom() && !g.opportunistic() {
			requeued = append(requeued, g)
		}
	}
	slices.SortFunc(requeued, byAge)
	for _, g := range requeued {
		for _, l := range b.leases {
			if l.charge.Run == string(g.run.UID) && b.members[l.pod] == nil && g.old(l.charge.Start) && b.stands(l.node) {
				b.hold(l.pod, "", 0, func(h *holding) { h.vacant = true })
				g.requeue.places = append(g.requeue.places, place{pod: l.pod, index: anyRank, node: l.node, gpus: l.charge.GPUs, kept: true})
			}
		}
		b.restoreClosed(g)
	}
	clear(b.unwound)
}

// restoreClosed has a gang keep what its old Leases held that have been closed since it was requeued.
func (b *Book) restoreClosed(g *gang) {
	at, _ := g.requeuedAt()
	for _, l := range b.unwound[g.run.UID] {
		charge, node, ended := ChargeIn(l), l.Node(), l.Status.Ended.Time
		pod := l.PodUID()
		if ended.Before(at) || !g.old(charge.Start) || !b.stands(node) || b.held[pod] != nil {
			continue
		}
		charge.Start = ended
		g.requeue.until = latest(g.requeue.until, ended.Add(b.args.GangDeadline.Duration))
		g.requeue.places = append(g.requeue.places, place{pod: pod, index: anyRank, node: node, gpus: charge.GPUs, charge: charge})
	}
	slices.SortFunc(g.requeue.places, func(x, y place) int { return strings.Compare(string(x.pod), string(y.pod)) })
	b.keepAgain(g)
}
