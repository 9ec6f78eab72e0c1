package budget

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Status returns the usage of a Budget: its envelopes in the Budget's own order, then removed ones that Leases still
// hold GPUs of, its aggregate caps, and the totals. The overdraft in it is as of the last Refresh. Conditions are left
// out.
func (a *Accounts) Status(b *rqv1.Budget, now time.Time) rqv1.BudgetStatus {
	out := rqv1.BudgetStatus{ObservedGeneration: b.Generation, ObservedAt: &metav1.Time{Time: now.Truncate(time.Second)}}
	envelopes := slices.Clone(b.Spec.Envelopes)
	for _, k := range a.envelopesPaying(b.Name) {
		if _, found := a.find(k); !found && len(a.accounts[k].live) > 0 {
			envelopes = append(envelopes, rqv1.Envelope{Name: k.Envelope})
		}
	}
	for i := range envelopes {
		s := a.envelopeStatus(b, &envelopes[i], now)
		out.Envelopes = append(out.Envelopes, s)
		out.UsedGPUs += s.OwnedGPUs + s.FamilyGPUs + s.LentGPUs + s.SpareGPUs + s.OverdraftGPUs
		out.OverdraftGPUs += s.OverdraftGPUs
		out.HeadroomGPUs += s.HeadroomGPUs
	}
	for i := range b.Spec.AggregateCaps {
		out.AggregateCaps = append(out.AggregateCaps, a.capStatus(b.Name, &b.Spec.AggregateCaps[i], now))
	}
	return out
}

func (a *Accounts) envelopeStatus(b *rqv1.Budget, e *rqv1.Envelope, now time.Time) rqv1.EnvelopeStatus {
	at := a.account(Key{b.Name, e.Name})
	within := func(t holder, p use) int { return at.gpus[t][p] - at.over[t][p] }
	s := rqv1.EnvelopeStatus{
		Name:       e.Name,
		OwnedGPUs:  int32(within(holderOwner, useActive)),
		FamilyGPUs: int32(within(holderFamily, useActive)),
		LentGPUs:   int32(within(holderBorrower, useActive)),
		SpareGPUs:  int32(within(holderOwner, useSpare) + within(holderFamily, useSpare) + within(holderBorrower, useSpare)),
		OpportunisticGPUs: int32(at.gpus[holderOwner][useOpportunistic] + at.gpus[holderFamily][useOpportunistic] +
			at.gpus[holderBorrower][useOpportunistic]),
		LendingGPUs: int32(at.heldBy(holderBorrower)),
		GPUHours:    a.hoursStatus(at, e, now),
	}
	for t := range at.over {
		for p := range at.over[t] {
			s.OverdraftGPUs += int32(at.over[t][p])
		}
	}
	headroom, lendable := a.headroom(b, e, now)
	s.HeadroomGPUs, s.LendableGPUs = int32(headroom), int32(lendable)
	return s
}

// headroom returns how many GPUs an envelope could still pay for, and how many of them for borrowers, for an hour.
func (a *Accounts) headroom(b *rqv1.Budget, e *rqv1.Envelope, now time.Time) (own, lent int) {
	if !open(e, now) {
		return 0, 0
	}
	c := &Cover{ask: Ask{GPUsPerPod: 1}, borrow: -1}
	bind := &builder{accounts: a, cover: c, now: now, caps: map[Key][]int{}}
	relation := rqv1.RelationOwn
	lends := e.Lending != nil && e.Lending.Allow && len(e.Lending.To) > 0
	if lends {
		relation = rqv1.RelationSponsor
	}
	own, lent = math.MaxInt32, math.MaxInt32
	for _, l := range bind.limitsOf(envelope{Key{b.Name, e.Name}, b.Spec.Owner, e}, relation) {
		at := &c.limits[l]
		pods := at.pods(pessimistic)
		lent = min(lent, pods)
		if at.Kind != LendingConcurrency && at.Kind != LendingGPUHours {
			own = min(own, pods)
		}
	}
	if !lends {
		lent = 0
	}
	return own, lent
}

func (a *Accounts) hoursStatus(at *account, e *rqv1.Envelope, now time.Time) *rqv1.GPUHours {
	spent := at.spent(now)
	hours := hoursOf(spent.all(), at.promised(now, holderOwner, holderFamily, holderBorrower), at.hourly(), e.MaxGPUHours)
	hours.Owned = amount(spent.spent[holderOwner][useActive])
	hours.Family = amount(spent.spent[holderFamily][useActive])
	hours.Lent = amount(spent.spent[holderBorrower][useActive])
	hours.Spare = amount(spent.spent[holderOwner][useSpare] + spent.spent[holderFamily][useSpare] +
		spent.spent[holderBorrower][useSpare])
	hours.Opportunistic = amount(spent.held)
	hours.Lending = amount(spent.of(holderBorrower))
	hours.LendingPromised = amount(at.promised(now, holderBorrower))
	hours.Lost = at.lostByCause()
	return hours
}

func (a *Accounts) capStatus(budget string, c *rqv1.AggregateCap, now time.Time) rqv1.AggregateCapStatus {
	used, spent, promised := a.under(budget, c, now)
	out := rqv1.AggregateCapStatus{Name: c.Name, UsedGPUs: int32(used)}
	if c.MaxConcurrency != nil {
		left := max(0, *c.MaxConcurrency-int32(used))
		out.HeadroomGPUs = &left
	}
	var hourly Spend
	for _, name := range c.Envelopes {
		if at := a.accounts[Key{budget, name}]; at != nil {
			hourly += at.hourly()
		}
	}
	out.GPUHours = hoursOf(spent, promised, hourly, c.MaxGPUHours)
	return out
}

func hoursOf(spent, promised, hourly Spend, most *int64) *rqv1.GPUHours {
	out := &rqv1.GPUHours{Spent: spent.String(), Promised: amount(promised), Hourly: amount(hourly)}
	if most != nil {
		out.Left = max(0, hours(*most)-spent).String()
	}
	return out
}

// amount returns GPU-hours as text, empty for none.
func amount(s Spend) string {
	if s == 0 {
		return ""
	}
	return s.String()
}

// ParseSpend reads GPU-hours as Spend.String writes them; empty is none.
func ParseSpend(text string) (Spend, error) {
	if text == "" {
		return 0, nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 41) // more GPU-hours than an int64 of Spend holds are no number of them
	rest, err2 := strconv.ParseUint((fraction + "00000")[:5], 10, 32)
	if err != nil || err2 != nil || len(fraction) > 5 {
		return 0, fmt.Errorf("%q is not a number of GPU-hours", text)
	}
	return Spend(n)*GPUHour + Spend(rest)*GPUHour/100000, nil
}
