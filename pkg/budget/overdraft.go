package budget

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Cause says why GPUs are overdraft. It is the reason of a Budget's Overdrawn condition.
type Cause string

// Causes of overdraft, the strongest first.
const (
	// CauseRemoved: the envelope, or the whole Budget, is gone.
	CauseRemoved Cause = "EnvelopeRemoved"
	// CauseWindow: the envelope's window is closed.
	CauseWindow Cause = "WindowClosed"
	// CauseWithdrawn: the envelope no longer serves the owner: sharing or lending was switched off, or parents changed.
	CauseWithdrawn Cause = "SharingWithdrawn"
	// CauseReach: the GPUs are not of the envelope's flavor, or not on nodes that its selector matches, any more.
	CauseReach Cause = "FlavorOrSelectorChanged"
	// CauseHours: the last GPU-hour is spent.
	CauseHours Cause = "GPUHoursSpent"
	// CauseConcurrency: a cap on GPUs was lowered below what is held.
	CauseConcurrency Cause = "ConcurrencyExceeded"
)

// Overdraft is what one envelope holds beyond what it allows, in GPUs, and why: the cause of the oldest of it.
type Overdraft struct {
	Key   Key
	GPUs  int
	Cause Cause
}

// Refresh assigns the overdraft anew and returns the Leases whose overdraft has changed, sorted. When an envelope pays
// for more than it allows, its youngest Leases are overdraft (R8).
func (a *Accounts) Refresh(now time.Time) []string {
	before := a.over
	a.over = map[string]int{}
	a.overdrafts = map[Key]Overdraft{}
	for budget, keys := range a.paying {
		for _, k := range keys {
			a.accounts[k].over = [holders][uses]int{}
		}
		if !a.allWithin(budget, keys, now) {
			a.overdraw(keys, now)
		}
	}
	var changed []string
	for _, side := range []map[string]int{before, a.over} {
		for lease := range side {
			if before[lease] != a.over[lease] {
				changed = append(changed, lease)
			}
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

// OverdraftOf returns how many of a Lease's GPUs were overdraft at the last Refresh.
func (a *Accounts) OverdraftOf(lease string) int { return a.over[lease] }

// overdraw goes through the charges of a Budget from the oldest, and finds what does not fit any more.
func (a *Accounts) overdraw(keys []Key, now time.Time) {
	type entry struct {
		lease string
		Charge
	}
	var all []entry
	wallets, balances := map[Key]*wallet{}, map[Key]*balance{}
	for _, k := range keys {
		wallets[k] = a.walletOf(k, balances, now)
		for lease, c := range a.accounts[k].live {
			if c.Role != rqv1.RoleBorrowed {
				all = append(all, entry{lease, c})
			}
		}
	}
	slices.SortFunc(all, func(x, y entry) int {
		return cmp.Or(x.admitted().Compare(y.admitted()), strings.Compare(x.lease, y.lease))
	})
	for _, c := range all {
		over, cause := wallets[c.Payer].take(&c.Charge)
		if over == 0 {
			continue
		}
		a.over[c.lease] = over
		a.accounts[c.Payer].over[holderOf(c.Relation)][useOf(c.Role)] += over
		o, known := a.overdrafts[c.Payer]
		if !known {
			o = Overdraft{Key: c.Payer, Cause: cause}
		}
		o.GPUs += over
		a.overdrafts[c.Payer] = o
	}
}

// Overdrafts returns the overdraft of a Budget's envelopes as of the last Refresh, sorted by envelope.
func (a *Accounts) Overdrafts(budget string) []Overdraft {
	var out []Overdraft
	for _, k := range slices.SortedFunc(maps.Keys(a.overdrafts), compareKeys) {
		if k.Budget == budget {
			out = append(out, a.overdrafts[k])
		}
	}
	return out
}
