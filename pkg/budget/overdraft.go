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

// Refresh assigns the overdraft anew and returns the Leases of which it has changed, sorted. Of what an envelope pays for,
// what no longer fits is overdraft, the youngest Leases first (R8).
func (a *Accounts) Refresh(now time.Time) []string {
	before := a.over
	a.over = map[string]int{}
	a.overdrafts = map[Key]Overdraft{}
	byBudget := map[string][]Key{}
	for k, at := range a.accounts {
		at.over = [ties][parts]int{}
		if len(at.live) > 0 {
			byBudget[k.Budget] = append(byBudget[k.Budget], k)
		}
	}
	for budget, keys := range byBudget {
		if !a.allWithin(keys, now) {
			a.overdraw(budget, keys, now)
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

// allWithin reports whether nothing under some envelopes of a Budget is overdraft, from counters alone.
func (a *Accounts) allWithin(keys []Key, now time.Time) bool {
	for _, k := range keys {
		at := a.accounts[k]
		e, ok := a.find(k)
		if !ok || a.ceiling(e, now) < at.inUse() || a.lendingCeiling(e, now) < at.heldBy(tieLent) {
			return false
		}
		served := map[rqv1.Owner]bool{}
		for _, c := range at.live {
			if _, known := served[c.Owner]; !known {
				served[c.Owner] = a.serves(e, c.Owner)
			}
			if !served[c.Owner] {
				return false
			}
		}
		b := a.budgets[k.Budget]
		for i := range b.Spec.AggregateCaps {
			if used, _ := a.under(k.Budget, &b.Spec.AggregateCaps[i], now); used > a.capCeiling(k.Budget, &b.Spec.AggregateCaps[i], now) {
				return false
			}
		}
	}
	return true
}

// unbounded is a ceiling that nothing reaches.
const unbounded = 1 << 40

// ceiling is how many GPUs an envelope allows now.
func (a *Accounts) ceiling(e envelope, now time.Time) int {
	if !open(e.Envelope, now) || spentOut(e.MaxGPUHours, a.spentOn(e.key, now)) {
		return 0
	}
	return int(e.Concurrency)
}

// lendingCeiling is how many GPUs an envelope allows borrowers now.
func (a *Accounts) lendingCeiling(e envelope, now time.Time) int {
	switch l := e.Lending; {
	case l == nil:
		return unbounded // whom it serves is asked apart
	case spentOut(l.MaxGPUHours, a.spentOn(e.key, now, tieLent)):
		return 0
	case l.MaxConcurrency != nil:
		return int(*l.MaxConcurrency)
	}
	return unbounded
}

// capCeiling is how many GPUs an aggregate cap allows now.
func (a *Accounts) capCeiling(budget string, c *rqv1.AggregateCap, now time.Time) int {
	var spent Spend
	for _, name := range c.Envelopes {
		spent += a.spentOn(Key{budget, name}, now)
	}
	switch {
	case spentOut(c.MaxGPUHours, spent):
		return 0
	case c.MaxConcurrency != nil:
		return int(*c.MaxConcurrency)
	}
	return unbounded
}

func (a *Accounts) spentOn(k Key, now time.Time, which ...tie) Spend {
	at := a.accounts[k]
	if at == nil {
		return 0
	}
	if len(which) == 0 {
		which = []tie{tieOwn, tieFamily, tieLent}
	}
	spent := at.spent(now)
	return spent.of(which...)
}

func spentOut(most *int64, spent Spend) bool { return most != nil && spent >= hours(*most) }

// open reports whether an instant is in an envelope's window.
func open(e *rqv1.Envelope, now time.Time) bool {
	return (e.Start == nil || !now.Before(e.Start.Time)) && (e.End == nil || now.Before(e.End.Time))
}

// serves reports whether an envelope may pay for an owner at all (R2, R4).
func (a *Accounts) serves(e envelope, owner rqv1.Owner) bool {
	relation, family := a.related().relation(owner, e.owner)
	if family && (relation == rqv1.RelationOwn || e.Sharing != rqv1.SharingNone) {
		return true
	}
	return e.Lending != nil && e.Lending.Allow && Admits(e.Lending.To, owner)
}

// overdraw goes through the charges of a Budget from the oldest, and finds what does not fit any more.
func (a *Accounts) overdraw(budget string, keys []Key, now time.Time) {
	type entry struct {
		lease string
		Charge
	}
	var all []entry
	for _, k := range keys {
		for lease, c := range a.accounts[k].live {
			if c.Role != rqv1.RoleBorrowed {
				all = append(all, entry{lease, c})
			}
		}
	}
	slices.SortFunc(all, func(x, y entry) int { return cmp.Or(x.Start.Compare(y.Start), strings.Compare(x.lease, y.lease)) })
	w := a.wallets(budget, keys, now)
	for _, c := range all {
		over, cause := w[c.Payer].take(&c.Charge)
		if over == 0 {
			continue
		}
		a.over[c.lease] = over
		a.accounts[c.Payer].over[tieOf(c.Relation)][partOf(c.Role)] += over
		o, known := a.overdrafts[c.Payer]
		if !known {
			o = Overdraft{Key: c.Payer, Cause: cause}
		}
		o.GPUs += over
		a.overdrafts[c.Payer] = o
	}
}

// wallet is what an envelope still allows while its charges are gone through.
type wallet struct {
	left, lent int
	// cause is why there is nothing left of an envelope that allows nothing, and lentCause why of one that lends nothing.
	cause, lentCause Cause        // why there is nothing left of an envelope that allows nothing
	caps             []*capWallet // of the aggregate caps over it
	serves           func(rqv1.Owner) bool
}

type capWallet struct {
	left  int
	cause Cause
}

func (a *Accounts) wallets(budget string, keys []Key, now time.Time) map[Key]*wallet {
	out := map[Key]*wallet{}
	caps := map[string]*capWallet{}
	b := a.budgets[budget]
	for _, k := range keys {
		e, ok := a.find(k)
		if !ok {
			out[k] = &wallet{cause: CauseRemoved, lent: unbounded, serves: func(rqv1.Owner) bool { return true }}
			continue
		}
		w := &wallet{left: a.ceiling(e, now), lent: a.lendingCeiling(e, now), cause: CauseConcurrency}
		served := map[rqv1.Owner]bool{}
		w.serves = func(owner rqv1.Owner) bool {
			if _, known := served[owner]; !known {
				served[owner] = a.serves(e, owner)
			}
			return served[owner]
		}
		w.lentCause = CauseConcurrency
		if w.lent == 0 {
			w.lentCause = CauseHours
		}
		if w.left == 0 {
			w.cause = CauseHours
			if !open(e.Envelope, now) {
				w.cause = CauseWindow
			}
		}
		for i := range b.Spec.AggregateCaps {
			c := &b.Spec.AggregateCaps[i]
			if !slices.Contains(c.Envelopes, e.Name) {
				continue
			}
			if caps[c.Name] == nil {
				caps[c.Name] = &capWallet{left: a.capCeiling(budget, c, now), cause: CauseConcurrency}
				if caps[c.Name].left == 0 {
					caps[c.Name].cause = CauseHours
				}
			}
			w.caps = append(w.caps, caps[c.Name])
		}
		out[k] = w
	}
	return out
}

// take lets a charge have what is left and returns how much of it is overdraft, and why.
func (w *wallet) take(c *Charge) (over int, cause Cause) {
	allowed := c.GPUs
	bound := func(left int, why Cause) {
		if left < allowed {
			allowed, cause = max(0, left), why
		}
	}
	bound(w.left, w.cause)
	if allowed > 0 && !w.serves(c.Owner) {
		bound(0, CauseWithdrawn)
	}
	if tieOf(c.Relation) == tieLent {
		bound(w.lent, w.lentCause)
	}
	for _, shared := range w.caps {
		bound(shared.left, shared.cause)
	}
	w.left -= allowed
	if tieOf(c.Relation) == tieLent {
		w.lent -= allowed
	}
	for _, shared := range w.caps {
		shared.left -= allowed
	}
	return c.GPUs - allowed, cause
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
