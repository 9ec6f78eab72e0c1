package book

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// moneyOf returns the name under which the money of a rank is kept that has no room.
func moneyOf(g *gang, index int) types.UID { return types.UID(fmt.Sprintf("%s/%d", g.run.UID, index)) }

// setAside has who paid for a lost rank of a running gang go on paying, once nothing else holds that money: until the
// rank has its place again or the gang does without it. Otherwise others would have it meanwhile, and the replacement,
// which is paid for whatever is left (R8), would take the Budget beyond what it allows.
func (s *seating) setAside(g *gang, index int) {
	if g.run == nil || !s.roster.open || !g.started() || g.suspended() || g.opportunistic() || index < 0 ||
		index >= g.demand.Pods() || g.aside[index] {
		return
	}
	charge, lost := g.paidBefore(index)
	if !lost || slices.Contains(s.payers(g, index), charge.Payer) { // most ranks are not lost, and that is known at once
		return
	}
	g.keptBy(index, charge)
	if g.aside == nil {
		g.aside = map[int]bool{}
	}
	g.aside[index] = true
	s.accounts.Open(charged(moneyOf(g, index)), charge)
}

// setAllAside does so for all ranks of a gang.
func (s *seating) setAllAside(g *gang) {
	if len(g.kept)+len(g.latest) == 0 {
		return
	}
	for index := range g.demand.Pods() {
		s.setAside(g, index)
	}
}

// payers returns who is charged for a rank: for its pod, for what a former one holds still, and for the room that is
// kept for its replacement.
func (s *seating) payers(g *gang, index int) (out []budget.Key) {
	add := func(charge budget.Charge, is bool) {
		if is {
			out = append(out, charge.Payer)
		}
	}
	if m := g.rankAt(index); m != nil {
		add(s.accounts.Charge(s.leaseOf(m.pod).String()))
	}
	if last := g.latest[rank.Part{Index: index}]; last != nil {
		add(last.charge, last.reason == "")
	}
	for i := range g.vacant {
		if v := &g.vacant[i]; v.index == index && (!v.seat() || v.own) {
			add(s.accounts.Charge(charged(v.pod)))
		}
	}
	return out
}

// billSeats has ranks that are to take the places of spares be paid for by whoever pays for the spares where no money
// of those who paid for the ranks is kept: others may have it by now. Where nobody pays for a spare, since this process
// has begun after its Lease was closed, those pay if they still can; else the rank is planned as if it had no place.
func (s *seating) billSeats(g *gang, now time.Time) {
	var offers []budget.Offer
	for i := range g.vacant {
		v := &g.vacant[i]
		if !v.seat() || v.own || g.aside[v.index] && g.kept[v.index].Payer == v.payer.key ||
			slices.Contains(s.payers(g, v.index), v.payer.key) {
			continue
		}
		if charge, paid := s.accounts.Charge(charged(v.pod)); paid {
			v.payer = payerOf(charge)
			continue
		}
		if offers == nil {
			offers = s.accounts.Cover(g.ask(), now).Offers
		}
		at := slices.IndexFunc(offers, func(o budget.Offer) bool { return o.Key == v.payer.key && o.Pods > 0 })
		if at < 0 {
			v.payer = payer{}
			continue
		}
		offers[at].Pods--
	}
}

// ask asks who could pay for pods of a gang.
func (g *gang) ask() budget.Ask {
	return budget.Ask{Owner: g.run.Spec.Owner, Flavor: g.full.Flavor, GPUsPerPod: g.full.GPUsPerPod,
		Run: string(g.run.UID), Funding: g.run.Spec.Funding}
}

// keepMoney has a requeued gang keep again what it has just lost of the money that it had been given: others may have
// what is left of it, so that this is the time for it.
func (s *seating) keepMoney(g *gang, lost budget.Charge) {
	if !g.keepsMoney() {
		return
	}
	for i := range g.requeue.places {
		p := &g.requeue.places[i]
		_, paid := s.accounts.Charge(charged(p.pod))
		if !paid && p.charge.Payer == lost.Payer && p.charge.GPUs <= lost.GPUs && p.charge.Rate <= lost.Rate {
			s.accounts.Open(charged(p.pod), p.charge)
			return
		}
	}
}

// giveAside gives up what is set aside for a rank.
func (s *seating) giveAside(g *gang, index int) {
	if !g.aside[index] {
		return
	}
	delete(g.aside, index)
	if charge, ok := s.accounts.Void(charged(moneyOf(g, index))); ok {
		s.waiting.wakeBudget(charge.Payer.Budget)
	}
}

// giveAsideFrom gives up what is set aside for ranks from an index on.
func (s *seating) giveAsideFrom(g *gang, index int) {
	for _, at := range slices.Sorted(maps.Keys(g.aside)) {
		if at >= index {
			s.giveAside(g, at)
		}
	}
}

// spend has a gang be planned as if what is set aside for missing ranks were not, until what it returns is called: then
// that of those which have no place is set aside again, as is what was when their rooms were given up. Nobody is woken
// by it unless some is not. Within a plan for more ranks, the money of the others is not for these.
func (s *seating) spend(g *gang, missing []plan.Missing, now time.Time) (back func()) {
	s.unspent()
	s.billSeats(g, now)
	spent := s.takeAside(g, missing)
	done := false
	back = func() {
		if done {
			return
		}
		done, s.unspent = true, func() {}
		maps.Copy(spent, s.takeAside(g, missing))
		var ranks []rank.Part
		for _, m := range missing {
			if spent[m.Part] {
				ranks = append(ranks, m.Part)
			}
		}
		s.exchange(g, ranks)
		for _, part := range ranks {
			payer := g.kept[part.Index].Payer
			if s.setAside(g, part.Index); !g.aside[part.Index] {
				s.waiting.wakeBudget(payer.Budget)
			}
		}
	}
	s.unspent = back
	return back
}

// takeAside frees what is set aside for missing ranks, and returns these.
func (s *seating) takeAside(g *gang, missing []plan.Missing) map[rank.Part]bool {
	freed := map[rank.Part]bool{}
	for _, m := range missing {
		if !m.Spare && g.aside[m.Index] {
			delete(g.aside, m.Index)
			s.accounts.Void(charged(moneyOf(g, m.Index)))
			freed[m.Part] = true
		}
	}
	return freed
}

// exchange has ranks whose places are paid for by each other's former payers keep each other's money: otherwise either
// payer would keep money for one of them and pay for the other.
func (s *seating) exchange(g *gang, ranks []rank.Part) {
	owes := func(part rank.Part) (payer budget.Key, other bool) {
		m := g.rankAt(part.Index)
		if m == nil {
			return payer, false
		}
		charge, paid := s.accounts.Charge(s.leaseOf(m.pod).String())
		return charge.Payer, paid && charge.Payer != g.kept[part.Index].Payer
	}
	for _, part := range ranks {
		payer, other := owes(part)
		if !other {
			continue
		}
		at := slices.IndexFunc(ranks, func(x rank.Part) bool {
			_, other := owes(x)
			return other && g.kept[x.Index].Payer == payer
		})
		if at >= 0 {
			x := ranks[at].Index
			g.kept[part.Index], g.kept[x] = g.kept[x], g.kept[part.Index]
		}
	}
}
