package book

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Prospect returns when a Run is going to start, or whether it is going to grow.
func (b *Book) Prospect(run types.UID) Prospect {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g != nil {
		return b.turns.prospectOf(g)
	}
	return Prospect{}
}

// Decided returns what has been decided for a Run and is to be published, whether or not all of its pods have been
// made; nil when nothing is.
func (b *Book) Decided(run types.UID) *Activation {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g != nil {
		return g.activation
	}
	return nil
}

// CutsOf returns what Reservations that are activating do to a Run.
func (b *Book) CutsOf(run types.UID) []rank.Cut {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.cuts.cutsOf(run)
}

// HoldRecords has Reservations hold so many bytes of an activation's record.
func (b *Book) HoldRecords(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agenda.mostBytes = bytes
}

// CompareRisks is the order of risks.
var CompareRisks = compareRisks

// Unpaid reports whether nobody can pay for a Run that waits.
func (b *Book) Unpaid(run types.UID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.roster.gangs[run]; g != nil {
		b.fill.askWhoPays(g, now)
		return g.unpaid
	}
	return false
}

// Awaited reports whether Runs still hold what the cuts of a Reservation take.
func (b *Book) Awaited(r *rqv1.Reservation) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.turns.victimsRemain(r)
}

// Overdraft returns how many GPUs of a Lease are beyond what its payer allows.
func (b *Book) Overdraft(lease types.NamespacedName) int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.accounts.OverdraftOf(lease.String())
}

// Remains lists what the book still knows of Runs and of what they hold: nothing once all of them are gone.
func (b *Book) Remains() []string {
	var out []string
	for what, n := range map[string]int{
		"held": len(b.seats.held), "leavers": len(b.seats.leavers), "waited for": len(b.seats.waitedFor),
		"leases": len(b.seats.leases) + len(b.seats.ofRun),
		"gangs":  len(b.roster.gangs), "living": len(b.roster.living),
		"runs": len(b.roster.runs), "members": len(b.roster.members),
		"requeued": len(b.roster.classes.requeued), "roomy": len(b.roster.classes.roomy),
		"awaiting": len(b.roster.classes.awaiting),
		"denied":   len(b.roster.classes.turnedBack), "mustering": len(b.roster.classes.mustering),
		"suspended": len(b.roster.classes.suspended),
		"turns":     len(b.roster.turns), "early": len(b.roster.early),
		"cuts": len(b.cuts.byReservation) + len(b.cuts.decided), "waiting": len(b.waiting.gangs),
		"intended": len(b.agenda.intended),
		"threats":  len(b.agenda.threats), "owed": len(b.agenda.debts.of) + len(b.agenda.debts.by),
	} {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s: %d", what, n))
		}
	}
	for key, gpus := range b.accounts.Usage() {
		if gpus != 0 {
			out = append(out, fmt.Sprintf("%s pays for %d GPUs", key, gpus))
		}
	}
	slices.Sort(out)
	return out
}

// Restless lists the Runs whose gangs are gone through although they are at rest, or are not although they are not.
func (b *Book) Restless() []string {
	var out []string
	for _, g := range b.roster.gangs {
		if g.run != nil && b.roster.living[g] == b.roster.atRest(g) {
			out = append(out, g.run.Name)
		}
	}
	slices.Sort(out)
	return out
}

// GoneThrough returns how many gangs are gone through.
func (b *Book) GoneThrough() int { return len(b.roster.living) }

// PaidTwice lists the ranks whose money is kept more than once: that of requeued gangs, and that of spares' seats.
func (b *Book) PaidTwice() []string {
	var out []string
	for _, g := range b.roster.gangs {
		kept := map[int]int{}
		for i := range g.requeue.places {
			if p := &g.requeue.places[i]; p.index != anyRank && p.kept {
				kept[p.index]++
			}
		}
		for i := range g.vacant {
			if g.vacant[i].seat() {
				kept[g.vacant[i].index]++
			}
		}
		for rank, times := range kept {
			if times > 1 {
				out = append(out, fmt.Sprintf("%s/%d", g.run.Name, rank))
			}
		}
	}
	slices.Sort(out)
	return out
}

// Needless packs a Run that has just been decided on anew, and lists what is wrong with its cuts: that it does not fit
// with all of them, or that it fits without one.
func (b *Book) Needless(run types.UID) []string {
	g := b.roster.gangs[run]
	within := map[string]bool{}
	for m := range g.all() {
		if domain, _, ok := b.fleet.Domain(m.node); ok {
			within[domain] = true
		}
	}
	rejected := b.nodes.rejectedAll(g, g.active.members[0].pod)
	if around := off(b.departures.stuckNow(g.activation.At), rejected); !g.touches(func(m *member) bool {
		return around(m.node)
	}) {
		rejected = around // it keeps off nodes on which something is stuck, if that is possible at all
	}
	defer unplace(b, g)()
	if g.activation.returns() {
		defer promisedBefore(b, g)()
	}
	missing, refusal := b.seats.missingOf(g)
	if refusal != nil {
		return []string{refusal.Message}
	}
	missing = b.nodes.byKind(g, missing, true)
	var out []string
	for at := -1; at < len(g.activation.Cuts); at++ {
		for _, cuts := range without(b, g.activation.Cuts, at) {
			freed := slices.DeleteFunc(b.turns.victims(&Activation{At: g.activation.At, Cuts: cuts}), func(pod types.UID) bool {
				m := b.roster.members[pod]
				others := slices.ContainsFunc(b.seats.held[pod].awaitedBy, func(other *gang) bool { return other != g })
				gone := m == nil && !b.seats.held[pod].vacant
				return at >= 0 && (gone || m != nil && (m.leaving || m.surplus()) || others) // it goes anyway
			})
			for _, pod := range freed {
				h := b.seats.held[pod]
				b.fleet.Hold(h.node, -h.gpus, h.beside)
			}
			attempt := plan.Prepare(b.accounts, g.demand, g.claim(nil), missing, rejected, g.activation.At).Within(within)
			fits := attempt.Unpaid(b.fleet) == nil && attempt.Fits(b.fleet)
			for _, pod := range freed {
				h := b.seats.held[pod]
				b.fleet.Hold(h.node, h.gpus, h.beside)
			}
			if at < 0 && !fits {
				out = append(out, fmt.Sprintf("it does not fit with the cuts %v", cuts))
			} else if at >= 0 && fits {
				out = append(out, fmt.Sprintf("it fits with fewer cuts than %v: %v", g.activation.Cuts, cuts))
			}
		}
	}
	return out
}

// unplace takes back what a gang was given by a decision, and returns what gives it again.
func unplace(b *Book, g *gang) (undo func()) {
	places := map[*member]string{}
	for m := range g.all() {
		if m.stage == assigned {
			places[m] = m.node
			held := g.holding(m)
			b.fleet.Hold(held.Node, -held.GPUs, held.Beside)
			m.stage, m.node = unplaced, ""
			b.accounts.Void(leaseName(m.pod).String())
		}
	}
	return func() {
		for m, node := range places {
			m.stage, m.node = assigned, node
			b.fleet.Hold(node, g.demand.GPUsPerPod, g.holding(m).Beside)
			b.accounts.Open(leaseName(m.pod).String(), b.seats.chargeOf(m, g.activation.At))
		}
	}
}

// without returns the ways to leave something out of one cut: all of it, one spare, or the last step.
func without(b *Book, cuts []rqv1.Cut, at int) [][]rqv1.Cut {
	if at < 0 {
		return [][]rqv1.Cut{cuts}
	}
	if cuts[at].Action == rqv1.CutReturn && slices.ContainsFunc(cuts, func(c rqv1.Cut) bool {
		return c.UID == cuts[at].UID && c.Action == rqv1.CutShrink
	}) {
		return nil // that takes it as well
	}
	out := [][]rqv1.Cut{slices.Delete(slices.Clone(cuts), at, at+1)}
	for i := range cuts[at].Spares {
		fewer := slices.Clone(cuts)
		fewer[at].Spares = slices.Delete(slices.Clone(cuts[at].Spares), i, i+1)
		out = append(out, fewer)
	}
	if width := cuts[at].Width; width != nil {
		d := b.roster.gangs[cuts[at].UID].full
		wider := slices.Clone(cuts)
		next := *width + int32(d.StepPods*d.GPUsPerPod)
		wider[at].Width = &next
		out = append(out, wider)
	}
	return out
}

// promisedBefore takes what older Runs are promised whose dates have come, and returns what gives it back.
func promisedBefore(b *Book, g *gang) func() {
	fork := plan.NewFork(b.fleet, b.accounts)
	ahead, _ := b.turns.future.aheadOf(g)
	for _, a := range ahead {
		if a.Younger || a.At.After(g.activation.At) {
			continue
		}
		for name, charge := range a.Charges {
			fork.Open(name, charge)
		}
		for _, h := range a.Holds {
			fork.Take(h.Node, h.GPUs, h.Beside)
		}
	}
	return fork.Revert
}

// Dump is for debugging.
func (b *Book) Dump() string {
	out := ""
	for _, g := range b.roster.gangs {
		out += fmt.Sprintf("%s vacant %+v refusal %+v leader %v\n", g.run.Name, g.vacant, g.refusal, g.leader())
	}
	for uid, h := range b.seats.held {
		out += fmt.Sprintf("held %s %+v\n", uid, *h)
	}
	return out
}

// LimitCuts is cutsPerHour, for this book alone.
func (b *Book) LimitCuts(limit int32) { b.args.CutsPerHour = &limit }

// GoRound is the part of a refresh that looks for gangs that wait in vain.
func (b *Book) GoRound(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns.goRound(now)
}

// Refusal returns why a Run does not start; nil when it has started, or has not been tried.
func (b *Book) Refusal(run types.UID) *plan.Refusal {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g != nil {
		return g.refusal
	}
	return nil
}

// OpenLeases returns the charges of the open Leases by name: what the counters must add up to (I8).
func (b *Book) OpenLeases() map[types.NamespacedName]budget.Charge {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	out := make(map[types.NamespacedName]budget.Charge, len(b.seats.leases))
	for name, l := range maps.All(b.seats.leases) {
		out[name] = l.charge
	}
	return out
}

// KnowNodes finds out which nodes those may use who wait.
func (b *Book) KnowNodes() {
	for _, c := range b.waiting.crowds {
		for _, g := range c.line {
			b.waiting.admits.usable(c.flavor, c.pods, g.model(), new(int))
		}
	}
}

// Bounded is how many nodes take no more than so many pods of a Run, by what they have said.
func (b *Book) Bounded(run types.UID) int { return len(b.roster.gangs[run].upTo) }

// LeftAlone returns the nodes that none of a Run's pods goes to for what they have said.
func (b *Book) LeftAlone(run types.UID) []string {
	return slices.Sorted(maps.Keys(b.roster.gangs[run].excluded))
}

// LaidOut reports whether a decision to cut for a Run goes by where its pods would be spread.
func (b *Book) LaidOut(run types.UID) bool { return b.roster.gangs[run].check.laidFor(true) != nil }

// Forgive has what nodes have said of a decision to cut for a Run not count any more that is over.
func (b *Book) Forgive(run types.UID, now time.Time) { b.waiting.forgive(b.roster.gangs[run], now) }

// Shunned returns the nodes that have turned a decision to cut for a Run down.
func (b *Book) Shunned(run types.UID) []string {
	return slices.Sorted(maps.Keys(b.roster.gangs[run].check.cuts.said()))
}
