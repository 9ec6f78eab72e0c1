package budget

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// allWithin reports whether nothing under the envelopes of a Budget is overdraft, by counters alone. Where it reports
// false there need not be any.
func (a *Accounts) allWithin(budget string, keys []Key, now time.Time) bool {
	idle := true
	for _, k := range keys {
		at := a.accounts[k]
		if len(at.live) == 0 {
			continue
		}
		idle = false
		e, found := a.find(k)
		if !found || !open(e.Envelope, now) || !a.keeps(e, at, now) {
			return false
		}
	}
	b := a.budgets[budget]
	for i := 0; !idle && b != nil && i < len(b.Spec.AggregateCaps); i++ {
		c := &b.Spec.AggregateCaps[i]
		used, spent := 0, Spend(0)
		for _, name := range c.Envelopes {
			if at := a.accounts[Key{budget, name}]; at != nil {
				used += at.inUse()
				spent += a.spentOn(Key{budget, name}, now)
			}
		}
		if used > 0 && (c.MaxConcurrency != nil && used > int(*c.MaxConcurrency) || spentOut(c.MaxGPUHours, spent)) {
			return false
		}
	}
	return true
}

// keeps reports whether an envelope whose window is open keeps its own limits and serves everybody whom it pays for.
func (a *Accounts) keeps(e envelope, at *account, now time.Time) bool {
	used, lent := at.inUse(), at.heldBy(holderBorrower)
	if used > int(e.Concurrency) || used > 0 && spentOut(e.MaxGPUHours, a.spentOn(e.key, now)) {
		return false
	}
	if l := e.Lending; l != nil && lent > 0 &&
		(l.MaxConcurrency != nil && lent > int(*l.MaxConcurrency) ||
			spentOut(l.MaxGPUHours, a.spentOn(e.key, now, holderBorrower))) {
		return false
	}
	for owner := range at.owners {
		if !a.related().serves(e, owner) {
			return false
		}
	}
	return a.nodes.coveredAll(e, at)
}

// count counts the GPUs of a charge, and whose they are.
func (a *account) count(c *Charge, by int) {
	a.gpus[holderOf(c.Relation)][useOf(c.Role)] += by * c.GPUs
	if c.Role == rqv1.RoleBorrowed {
		return
	}
	a.owners[c.Owner] += by
	if a.owners[c.Owner] == 0 {
		delete(a.owners, c.Owner)
	}
	a.flavors[c.Flavor] += by
	if a.flavors[c.Flavor] == 0 {
		delete(a.flavors, c.Flavor)
	}
}
