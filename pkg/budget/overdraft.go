package budget

import (
	"maps"
	"slices"
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
// for more than it allows, its youngest Leases are overdraft (R8). Only Budgets are looked at of which anything has
// changed since, or for which time has come.
func (a *Accounts) Refresh(now time.Time) []string { return a.RefreshOf(a.Stale(now), now) }

// Stale returns the Budgets whose overdraft may have changed, sorted.
func (a *Accounts) Stale(now time.Time) []string {
	now = now.Round(0) // what the clock shows: windows go by that
	if now.Before(a.fresh.seen) {
		a.fresh.none() // it has been set back
	}
	a.fresh.seen = now
	var stale []string
	for budget := range a.paying {
		if !a.fresh.is(budget, now) {
			stale = append(stale, budget)
		}
	}
	slices.Sort(stale)
	return stale
}

// RefreshOf does as Refresh for some Budgets.
func (a *Accounts) RefreshOf(budgets []string, now time.Time) []string {
	now = now.Round(0)
	var changed []string
	for _, budget := range budgets {
		keys := a.paying[budget]
		changed = append(changed, a.refresh(budget, keys, now)...)
		a.fresh.until[budget] = a.staysUntil(budget, keys, now)
	}
	slices.Sort(changed)
	return changed
}

// refresh assigns the overdraft of a Budget, and returns the Leases whose overdraft has changed.
func (a *Accounts) refresh(budget string, keys []Key, now time.Time) []string {
	before := map[string]int{}
	for _, k := range keys {
		at := a.accounts[k]
		for _, lease := range at.overdrawn {
			c, open := a.charges[lease]
			if open && c.Payer.Budget != budget && slices.Contains(a.accounts[c.Payer].overdrawn, lease) {
				continue // it has been found to be another's
			}
			before[lease] = a.over[lease]
			delete(a.over, lease)
		}
		at.over, at.overdrawn = [holders][uses]int{}, nil
		delete(a.overdrafts, k)
	}
	if !a.allWithin(budget, keys, now) {
		a.overdraw(keys, now)
	}
	var changed []string
	for _, k := range keys {
		for _, lease := range a.accounts[k].overdrawn {
			if before[lease] != a.over[lease] {
				changed = append(changed, lease)
			}
			delete(before, lease)
		}
	}
	return slices.AppendSeq(changed, maps.Keys(before))
}

// OverdraftOf returns how many of a Lease's GPUs were overdraft at the last Refresh.
func (a *Accounts) OverdraftOf(lease string) int { return a.over[lease] }

// overdraw finds what does not fit any more under the limits of a Budget, where the oldest charges come first.
func (a *Accounts) overdraw(keys []Key, now time.Time) {
	oldest := map[Key]claim{}
	note := func(c claim, over int, cause Cause) {
		k := c.of.key
		at := a.accounts[k]
		a.over[c.lease] = over
		at.overdrawn = append(at.overdrawn, c.lease)
		at.over[c.holder][c.use] += over
		o := a.overdrafts[k]
		if first, known := oldest[k]; !known || c.compare(&first) < 0 {
			oldest[k], o.Key, o.Cause = c, k, cause
		}
		o.GPUs += over
		a.overdrafts[k] = o
	}
	var all claims
	var c Charge
	wallets, caps := make([]*wallet, len(keys)), map[Key]*balance{}
	for i, k := range keys {
		w, live, lease := a.walletOf(k, caps, now), a.accounts[k].live, ""
		wallets[i], all = w, slices.Grow(all, len(live))
		for lease, c = range live { // one variable for all: its address is taken
			if c.Role == rqv1.RoleBorrowed {
				continue
			}
			x := claim{lease, c.AdmittedAt(), c.GPUs, w, holderOf(c.Relation), useOf(c.Role)}
			if cause := w.refuses(&c, x.limits()); cause != "" {
				note(x, c.GPUs, cause)
			} else {
				all = append(all, x)
			}
		}
	}
	for _, c := range all.youngest(wallets) {
		if over := c.take(); over > 0 {
			note(c, over, CauseConcurrency)
		}
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
