package budget

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// Outline returns accounts that stand as these do, from an instant on, and change by themselves from then on. Of what
// is charged they know those Leases alone that are named: the others are in the sums, and closed ones nowhere else.
// It takes one look at each envelope, however many Leases there are.
func (a *Accounts) Outline(leases iter.Seq[string], now time.Time) *Accounts {
	out := NewAccounts(a.rates)
	out.budgets, out.borrowed, out.complete = maps.Clone(a.budgets), maps.Clone(a.borrowed), a.complete
	out.accounts = make(map[Key]*account, len(a.accounts))
	all, noted := make([]account, 0, len(a.accounts)), newAccount() // what is noted of Leases is noted for all together
	for k, at := range a.accounts {
		all = append(all, *at)
		twin := &all[len(all)-1]
		twin.live, twin.closed, twin.byEnd = noted.live, noted.closed, nil
		twin.owners, twin.flavors, twin.lossOf = noted.owners, noted.flavors, noted.lossOf
		twin.ends, twin.begun = at.ends.clone(), at.begun.after(now.Unix())
		twin.buckets = nil // it settles nothing
		out.accounts[k] = twin
	}
	for lease := range leases {
		if c, open := a.charges[lease]; open {
			out.charges[lease] = c
		}
	}
	return out
}

func (e *endings) clone() endings { return endings{list: slices.Clone(e.list), at: maps.Clone(e.at)} }

// after returns those that begin after an instant: from then on sums lack nothing of the others.
func (b *beginnings) after(unix int64) beginnings {
	out := beginnings{}
	if b.latest <= unix {
		return out
	}
	for from, x := range b.at {
		if from > unix {
			twin := *x
			if out.at == nil {
				out.at = map[int64]*beginning{}
			}
			out.at[from], out.latest = &twin, max(out.latest, from)
		}
	}
	return out
}
