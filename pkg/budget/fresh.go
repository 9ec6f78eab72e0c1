package budget

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// freshness tells of which Budgets the overdraft is still what it was when it was last assigned.
type freshness struct {
	// until is when time alone may change it, by Budget, zero where it never does; those that it does not list are to be
	// looked at. Seen is when some last were.
	until map[string]time.Time
	seen  time.Time
}

// not notes that something has changed that is charged to a Budget.
func (f *freshness) not(budget string) { delete(f.until, budget) }

// none notes that something has changed that is about all Budgets.
func (f *freshness) none() { clear(f.until) }

// is reports whether the overdraft of a Budget is what it was.
func (f *freshness) is(budget string, now time.Time) bool {
	until, known := f.until[budget]
	return known && (until.IsZero() || now.Before(until))
}

// staysUntil returns when time alone may change what is overdraft of a Budget: a window opens or closes, or GPU-hours
// run out; zero if it never does.
func (a *Accounts) staysUntil(budget string, keys []Key, now time.Time) time.Time {
	var next time.Time
	by := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, k := range keys {
		e, found := a.find(k)
		if !found {
			continue
		}
		if e.Start != nil {
			by(e.Start.Time)
		}
		if e.End != nil {
			by(e.End.Time)
		}
		by(a.runsOut(e.MaxGPUHours, []Key{k}, now))
		if e.Lending != nil {
			by(a.runsOut(e.Lending.MaxGPUHours, []Key{k}, now, holderBorrower))
		}
	}
	if b := a.budgets[budget]; b != nil {
		for i := range b.Spec.AggregateCaps {
			c := &b.Spec.AggregateCaps[i]
			by(a.runsOut(c.MaxGPUHours, keysUnder(budget, c), now))
		}
	}
	return next
}

// keysUnder returns the envelopes under an aggregate cap.
func keysUnder(budget string, c *rqv1.AggregateCap) []Key {
	var out []Key
	for _, name := range c.Envelopes {
		out = append(out, Key{budget, name})
	}
	return out
}

// runsOut returns when some holders will have spent a number of GPU-hours of some envelopes, as fast as they spend now;
// zero if they have by now, or never will. What begins later makes it no sooner.
func (a *Accounts) runsOut(most *int64, of []Key, now time.Time, which ...holder) time.Time {
	if most == nil {
		return time.Time{}
	}
	left, perSecond := hours(*most), Spend(0)
	for _, k := range of {
		left -= a.spentOn(k, now, which...)
		if at := a.accounts[k]; at != nil {
			perSecond += at.perSecond(which...)
		}
	}
	if left <= 0 || perSecond <= 0 {
		return time.Time{}
	}
	return time.Unix(now.Unix()+int64((left+perSecond-1)/perSecond), 0)
}
