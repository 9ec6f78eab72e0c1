package book

import (
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// entryOf returns what the book keeps of a Lease.
func entryOf(l *rqv1.Lease, charge budget.Charge) *lease {
	return &lease{
		pod: l.PodUID(), part: rank.Held(l),
		run:  types.NamespacedName{Namespace: l.Spec.RunRef.Namespace, Name: l.Spec.RunRef.Name},
		node: l.Node(), charge: charge, reason: l.Status.ClosureReason,
	}
}

// note remembers the Lease that a part of a Run has had last: who takes a part over is paid for by what the ledger says of it,
// whatever a pod says. Shards take nothing over.
func (b *Book) note(l *lease) {
	g := b.gangs[types.UID(l.charge.Run)]
	if g == nil || g.over() || l.charge.Role == rqv1.RoleBorrowed {
		return
	}
	if last := g.latest[l.part]; last != nil && last.pod != l.pod && last.charge.Start.After(l.charge.Start) {
		return
	}
	if g.latest == nil {
		g.latest = map[rank.Part]*lease{}
	}
	g.latest[l.part] = l
}

// noteClosed notes that a Lease is closed, and why. Only a Run that runs has parts to take over; of others it is noted that
// they hold no more what they held.
func (b *Book) noteClosed(l *rqv1.Lease, charge budget.Charge) {
	g, entry := b.gangs[l.Spec.RunRef.UID], entryOf(l, charge)
	if g == nil {
		return
	}
	if last := g.latest[entry.part]; g.started() || last != nil && last.pod == entry.pod {
		b.note(entry)
	}
}

// noteAll notes all open Leases: some may have been seen before their Runs were.
func (b *Book) noteAll() {
	for _, l := range b.leases {
		b.note(l)
		if h := b.held[l.pod]; h != nil {
			b.holdsBeside(l.pod, h)
		}
	}
}

// lostRanks returns the ranks of a running gang that were refused a place after a node was lost with the last one that they had.
func (b *Book) lostRanks(g *gang) []int {
	if !g.started() || g.refusal == nil {
		return nil
	}
	var out []int
	for index, m := range g.active.between(0, g.active.size) {
		if last := g.latest[rank.Part{Index: index}]; (m == nil || m.stage == unplaced) && last != nil &&
			(last.reason == rqv1.ClosedNodeFailure || !b.stands(last.node)) {
			out = append(out, index)
		}
	}
	return out
}

// lastPaid returns what a missing rank of a running gang was charged last, if it was lost or deleted: a process that has begun since
// knows from the ledger alone who goes on paying for it. A rank by which the gang grows is none that it had.
func (g *gang) lastPaid(m plan.Missing) (budget.Charge, bool) {
	last := g.latest[rank.Part{Index: m.Index}]
	if last == nil || !g.started() || g.growing() > 0 && !g.settled().Has(m.Part) ||
		last.reason != rqv1.ClosedNodeFailure && last.reason != rqv1.ClosedDeleted {
		return budget.Charge{}, false
	}
	return last.charge, true
}

// spareLease returns the Lease of the spare that a record names, if the ledger knows it as a spare of the gang on the node that
// the record names, which stands by or has given way for a rank; else nil.
func (g *gang) spareLease(r rank.Replacement) *lease {
	for index := range g.full.Spares() {
		l := g.latest[rank.Part{Index: index, Spare: true}]
		if l != nil && l.pod == r.SpareUID && l.node == r.Node && (l.reason == "" || l.reason == rqv1.ClosedSwap) {
			return l
		}
	}
	return nil
}

// paysForSeat returns who pays for a rank that takes a spare's place: whoever paid for the rank that was lost with its node,
// else for the spare. A rank that has waited for room since it was lost has no money set aside any more.
func (g *gang) paysForSeat(seat rank.Part, r rank.Replacement, spare *lease) payer {
	lost := g.latest[seat]
	if r.Lost != "" && lost != nil && lost.node == r.Lost && (lost.reason == "" || lost.reason == rqv1.ClosedNodeFailure) {
		return payerOf(lost.charge)
	}
	return payerOf(spare.charge)
}
