package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

// Creditors returns the Runs with dates that come before one which is about to be planned: what they are to be paid
// from is kept from it. There are none of one that has its money already.
func (b *Book) Creditors(run types.UID) (out []types.UID) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	if g == nil || g.run == nil || g.keepsRoom() || g.activates() || g.started() && !g.grows() {
		return nil
	}
	for other := range b.agenda.promised {
		if other != g && other.filed.listed && (g.started() || byPlace(other, g) < 0) {
			out = append(out, other.run.UID)
		}
	}
	return out
}

// Robbed lists what a Run that has just been given places takes of what others are to be paid from that came first and
// have dates: what their payers hold on these dates, beside each other, is more than these allow, and would not be
// without the Run (R18). It reports also whether any of them pays for it.
func (b *Book) Robbed(run types.UID, creditors []types.UID, now time.Time) (robbed []string, owed bool) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	var first []*gang
	for _, uid := range creditors {
		if other := b.roster.gangs[uid]; other != nil && b.agenda.promised[other] && other.filed.listed {
			first = append(first, other)
		}
	}
	slices.SortFunc(first, func(x, y *gang) int { return cmp.Or(x.promise.At.Compare(y.promise.At), byPlace(x, y)) })
	for i, o := range first {
		at, due := o.promise.At, map[budget.Key]int{}
		for _, other := range first[:i+1] {
			for _, paid := range paidBy(other.promise) {
				if until := other.run.Spec.Until(other.promise.At); until.IsZero() || until.After(at) {
					due[paid.Payer] += paid.GPUs
				}
			}
		}
		for k, gpus := range due {
			used, taken := b.heldAt(k, g, at, now)
			owed = owed || taken > 0
			if most := b.concurrencyOf(k); used+gpus > most && used+gpus-taken <= most {
				robbed = append(robbed, fmt.Sprintf("%s holds %d GPUs of %s at %s, when %s is to start: %d of %d are "+
					"held then, and %d are promised", g.run.Name, taken, k, at, o.run.Name, used, most, gpus))
			}
		}
	}
	slices.Sort(robbed)
	return robbed, owed
}

// heldAt returns how many GPUs an envelope pays for at an instant of those that are held now, and how many of them a
// gang has that has just been given them.
func (b *Book) heldAt(k budget.Key, g *gang, at, now time.Time) (used, taken int) {
	ended := map[string]bool{}
	for name, l := range b.seats.leases {
		if h := b.seats.held[l.pod]; h.outlived() && !h.endsBy.After(at) {
			ended[name.String()] = true // what its containers hold is free by then
		}
	}
	for name := range b.charges() {
		if c, ok := b.accounts.Charge(name); ok && c.Payer == k && c.Role != rqv1.RoleBorrowed &&
			!ended[name] && (c.Until.IsZero() || !c.Until.Before(at.Add(time.Second))) { // ends are in whole seconds
			used += c.GPUs
			if c.Run == string(g.run.UID) && c.Start.Equal(now) {
				taken += c.GPUs
			}
		}
	}
	return used, taken
}

// charges returns the names of all that may be charged: to pods, to Leases whose pods are gone, and what is kept for
// pods to come.
func (b *Book) charges() map[string]bool {
	out := map[string]bool{}
	for name := range b.seats.leases {
		out[name.String()] = true
	}
	for _, g := range b.roster.gangs {
		for m := range g.all() {
			out[leaseName(m.pod).String()] = true
		}
		for i := range g.vacant {
			out[charged(g.vacant[i].pod)] = true
		}
		for i := range g.requeue.places {
			if !g.requeue.lapsed { // else it is given up once that is written
				out[charged(g.requeue.places[i].pod)] = true
			}
		}
		for index := range g.aside {
			out[charged(moneyOf(g, index))] = true
		}
	}
	return out
}

func (b *Book) concurrencyOf(k budget.Key) int {
	for _, e := range b.accounts.Budget(k.Budget).Spec.Envelopes {
		if e.Name == k.Envelope {
			return int(e.Concurrency)
		}
	}
	return 0
}

// Owe has a Run that waits be promised a start at an instant, whatever else it waits for.
func (b *Book) Owe(run types.UID, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.roster.gangs[run]
	key := b.accounts.Payers()[0]
	for _, name := range b.accounts.Payers() {
		if p := b.accounts.Budget(name); p != nil && p.Spec.Owner == g.run.Spec.Owner {
			key = name
		}
	}
	b.agenda.setPromise(g, &forecast.Promise{At: at, Paid: []forecast.Paid{{Payer: budget.Key{Budget: key, Envelope: "e"},
		Relation: rqv1.RelationOwn, GPUs: g.full.HeldGPUs()}}})
}

// Usurpers says who has taken what a Run is promised.
func (b *Book) Usurpers(run types.UID) string {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.turns.usurpers(b.roster.gangs[run])
}

// WakeBudget has a Budget perhaps pay for more.
func (b *Book) WakeBudget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.wakeBudget(name)
}

// KeptFromIt reports whether a Run waits for money while some is kept for another of which a book that is new knows
// nothing: one that is to start by cuts, whose date has come and whose Reservation nobody writes, as it is for good
// where no controller of Reservations runs, or one that was first in line for money and lacks room by now.
func (b *Book) KeptFromIt(run types.UID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g == nil || g.refusal == nil || !g.refusal.AboutMoney() {
		return false
	}
	for _, other := range b.roster.gangs {
		if b.agenda.promised[other] && other.reservation == nil && other.promise.Cuts && !other.dueAt().After(now) ||
			other.isFirst() && other.refusal != nil && !other.refusal.AboutMoney() {
			return true
		}
	}
	return false
}
