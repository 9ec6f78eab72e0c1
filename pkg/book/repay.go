package book

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Repay returns the Leases that are to be opened for a Run which has become narrower: it gave back its highest ranks,
// and what others pay for is to be given back first (R6, R24). Its owner's envelopes, as far as they paid for ranks
// that are gone and have the money still, pay for ranks that are left and that others have paid for: those of sponsors
// first, then the lowest. Their money is taken from now on, until NotRepaid tells that it is not.
func (b *Book) Repay(run types.UID, now time.Time) []*rqv1.Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.roster.gangs[run]
	if g == nil || g.run == nil || !b.roster.open || !g.started() || g.over() || g.suspended() || g.growing() > 0 {
		return nil
	}
	b.notRepaid(g)
	most := b.seats.givenBack(g)
	if most <= 0 {
		return nil
	}
	b.agenda.stamped(now)
	var names []string
	of := map[string]*member{}
	for _, m := range b.seats.borrowed(g) {
		name := b.seats.leaseName(m.pod).String()
		names, of[name] = append(names, name), m
	}
	ask := budget.Ask{Owner: g.run.Spec.Owner, Flavor: g.demand.Flavor, Run: string(run),
		Owed: b.agenda.debts.before(g, true)}
	if end, limited := g.endsAt(now); limited {
		ask.MaxDuration = max(time.Second, end.Sub(now))
	}
	var out []*rqv1.Lease
	for _, r := range b.accounts.Repay(ask, names, most, now) {
		m := of[r.Lease]
		name := b.seats.leaseName(m.pod)
		name.Name = rank.NextLeaseName(m.pod.Name, m.pod.UID, name.Name)
		b.accounts.Open(name.String(), r.Charge)
		g.repaying = append(g.repaying, name)
		out = append(out, b.leaseOf(m, name, r.Charge, rqv1.ReasonRepaid))
	}
	return out
}

// NotRepaid tells that not all Leases have been written which a Run's owner was to pay by from now on.
func (b *Book) NotRepaid(run types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.roster.gangs[run]; g != nil {
		b.notRepaid(g)
	}
}

func (b *Book) notRepaid(g *gang) {
	for _, name := range g.repaying {
		if charge, ok := b.accounts.Void(name.String()); ok {
			b.waiting.wakeBudget(charge.Payer.Budget)
		}
	}
	g.repaying = nil
}

// givenBack returns how many more ranks and spares a gang's owner has paid for that are gone since it became narrower
// than it pays for by now in the place of others.
func (s *seating) givenBack(g *gang) int {
	gone, since := 0, time.Time{}
	for part, l := range g.latest {
		if l.reason == "" || g.demand.Has(part) || g.former(l) || l.charge.Relation != rqv1.RelationOwn ||
			l.charge.Owner != g.run.Spec.Owner {
			continue
		}
		gone++
		if since.IsZero() || l.ended.Before(since) {
			since = l.ended
		}
	}
	if gone == 0 {
		return 0
	}
	for _, l := range s.ofRun[g.run.UID] {
		if l.repaid && !l.charge.Start.Before(since) {
			gone--
		}
	}
	return gone
}

// borrowed returns the pods of a gang that stay and that another than its owner pays for, in the order in which their
// payers get their money back.
func (s *seating) borrowed(g *gang) []*member {
	var out []*member
	for m := range g.all() {
		l := s.leases[s.leaseName(m.pod)]
		if l != nil && m.stage >= leased && m.stage < finished && g.demand.Has(m.part) && !m.leaving && !m.doomed() &&
			l.charge.Relation != rqv1.RelationOwn && l.charge.Owner == g.run.Spec.Owner {
			out = append(out, m)
		}
	}
	lent := func(m *member) int {
		if m.payer.relation == rqv1.RelationSponsor {
			return 0
		}
		return 1
	}
	spare := func(m *member) int {
		if m.part.Spare {
			return 1
		}
		return 0
	}
	slices.SortFunc(out, func(x, y *member) int {
		return cmp.Or(cmp.Compare(spare(x), spare(y)), cmp.Compare(lent(x), lent(y)),
			cmp.Compare(x.part.Index, y.part.Index))
	})
	return out
}

// supersede records that a pod's Lease ends as another of the same pod begins: what the pod holds it goes on holding.
func (led *ledger) supersede(name types.NamespacedName, at time.Time) {
	l := led.seats.leases[name]
	led.accounts.Close(name.String(), at)
	led.seats.forgetLease(name, l)
	led.roster.countLease(types.UID(l.charge.Run), -1)
	led.seats.roles[l.charge.Role] -= l.charge.GPUs
	led.waiting.wakeBudget(l.charge.Payer.Budget)
}

// inPlaceOf reports whether an open Lease of a pod was opened in place of another of it.
func (l *lease) inPlaceOf(other *lease) bool {
	return l.repaid && l.node == other.node && !l.charge.Start.Before(other.charge.Start) &&
		(!other.repaid || !l.charge.Start.Equal(other.charge.Start))
}
