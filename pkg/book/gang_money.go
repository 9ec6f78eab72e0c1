package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/outage"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// lastsUntil returns when a Run's maxDuration ends what opens at an instant: what joins a Run that runs, as a
// replacement, a spare or a cohort, ends with it. It is zero for a Run without one.
func (g *gang) lastsUntil(now time.Time) time.Time {
	end, _ := g.endsAt(now)
	return end
}

// endingWithRun returns a charge of the gang as it ends by now: an end may be set, or come to be sooner, while a Run
// runs (R22), and its Leases tell the one that was known when they were opened. Ends count in whole seconds.
func (g *gang) endingWithRun(c budget.Charge) budget.Charge {
	if g.run == nil {
		return c
	}
	end, limited := g.run.EndsAt()
	if limited && (c.Until.IsZero() || end.Unix() < c.Until.Unix()) {
		c.Until = end
	}
	return c
}

// admittedBefore returns when what opens at an instant was admitted (R8) if that was before: a replacement when its Run
// was. It is zero for what is admitted as it opens, as a start, a cohort or a belated rank.
func (m *member) admittedBefore(now time.Time) time.Time {
	if at, ok := m.gang.startedAt(); ok && at.Before(now) && !m.joins() && !m.belated() {
		return at
	}
	return time.Time{}
}

// claim returns what a gang may claim to be paid for. One that runs asks for no longer than it may still run.
func (g *gang) claim(kept plan.Kept) plan.Claim {
	c := plan.ClaimOf(g.run)
	c.Kept, c.Most = kept, g.mostOn()
	if !g.grows() { // what grows does not wait
		c.Leaves = g.leavesBefore()
	}
	if at, ok := g.startedAt(); ok {
		c.Until = g.run.Spec.Until(at)
	}
	return c
}

// leavesBefore is how long before maintenance of a node the gang's pods are asked to leave it at the soonest, if they
// can be moved: the Run declares a checkpoint, or has spares. It is 0 if they cannot.
func (g *gang) leavesBefore() time.Duration {
	spec := &g.run.Spec
	if !spec.Checkpoints() && g.full.Spares() == 0 {
		return 0
	}
	return outage.Lead(g.notice, spec.CheckpointInterval())
}

// keptFor returns the pods of a running Run that are gone, by who pays for them: the payers go on paying for their
// replacements (R8), until all of them are placed. They pay for the owner that they paid for: one who comes after, by
// an edit of a Run that was requeued, has no claim to them.
func (g *gang) keptFor(missing []plan.Missing) plan.Kept {
	kept := plan.Kept{}
	for _, m := range missing {
		if m.Spare {
			continue
		}
		if charge, ok := g.paidBefore(m.Index); ok {
			kept[charge.Payer] = budget.Kept{Pods: kept[charge.Payer].Pods + 1, Relation: charge.Relation}
		}
	}
	return kept
}

// paidBefore returns what is charged for a rank that is gone, if its payer goes on paying for its replacement: what was
// given up is others' by now, and a rank that has done its work has none.
func (g *gang) paidBefore(index int) (budget.Charge, bool) {
	if m := g.rankAt(index); g.forgone(index) || m != nil && m.succeeded() {
		return budget.Charge{}, false
	}
	charge, ok := g.kept[index]
	if !ok {
		charge, ok = g.lastPaid(rank.Part{Index: index})
	}
	return charge, ok && charge.Owner == g.run.Spec.Owner
}

// lastPaid returns what a missing rank of a running gang was charged last, if it was lost or deleted, or has died: a
// process that has begun since knows from the ledger alone who goes on paying for it. A rank by which the gang grows is
// none that it had. One that was lost before its Run ran is none of a Run that ran: nothing was set aside for it. When
// a Run started is known in whole seconds.
func (g *gang) lastPaid(part rank.Part) (budget.Charge, bool) {
	last := g.latest[part]
	if last == nil || !g.started() || g.former(last) || g.growing() > 0 && !g.settled().Has(part) ||
		!last.lost() && !last.died() && last.reason != rqv1.ClosedDeleted {
		return budget.Charge{}, false
	}
	if at, ok := g.startedAt(); !ok || last.ended.Before(at.Add(time.Second)) {
		return budget.Charge{}, false
	}
	charge := last.charge
	charge.Start = last.ended
	return charge, true
}

// spareLease returns the Lease of the spare that a record names, if the ledger knows it as a spare of the gang on the
// node that the record names, which stands by or has given way for a rank; else nil.
func (g *gang) spareLease(r rank.Replacement) *lease {
	for index := range g.full.Spares() {
		l := g.latest[rank.Part{Index: index, Spare: true}]
		if l != nil && l.pod == r.SpareUID && l.node == r.Node && (l.reason == "" || l.reason == rqv1.ClosedSwap) {
			return l
		}
	}
	return nil
}

// paysForSeat returns who pays for a rank that takes a spare's place: whoever paid for the rank that was lost with its
// node, else for the spare. A rank that has waited for room since it was lost has no money set aside any more.
func (g *gang) paysForSeat(seat rank.Part, r rank.Replacement, spare *lease) payer {
	lost := g.latest[seat]
	if r.Lost != "" && lost != nil && lost.node == r.Lost && !g.forgone(seat.Index) &&
		(lost.reason == "" || lost.lost() || lost.died()) {
		return payerOf(lost.charge)
	}
	return payerOf(spare.charge)
}

// keptBy remembers who pays for a rank.
func (g *gang) keptBy(rank int, charge budget.Charge) {
	if g.kept == nil {
		g.kept = map[int]budget.Charge{}
	}
	g.kept[rank] = charge
}

// reasonFor returns why a member's Lease is opened.
func reasonFor(m *member) rqv1.LeaseReason {
	if _, again := rank.RestartOf(m.pod); again {
		return rqv1.ReasonRestart
	}
	if _, replaces := rank.ReplacementOf(m.pod); replaces {
		return rqv1.ReasonSwap
	}
	if m.joins() {
		return rqv1.ReasonGrow
	}
	return rqv1.ReasonStart
}

// seats reports whether the room of a spare is kept for a rank of the gang.
func (g *gang) seats(spare types.UID) bool {
	return slices.ContainsFunc(g.vacant, func(v vacancy) bool { return v.seat() && v.pod == spare })
}

// taken reports whether a cut takes a part of a gang. A Run that has ended or is gone leaves all that it held.
func taken(g *gang, part rank.Part, c *rqv1.Cut) bool {
	if g == nil || g.run == nil || g.over() || g.shape != nil {
		return true
	}
	return g.full.Cuts(c, part)
}
