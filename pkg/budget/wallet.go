package budget

import (
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// wallet is what an envelope still allows while its charges are gone through (R8).
type wallet struct {
	key      Key
	closed   Cause      // why nothing is allowed to anybody; empty otherwise
	balances []*balance // of the envelope first, then of the aggregate caps over it
	lent     []*balance // the same, and what borrowers may hold
	serves   func(rqv1.Owner) bool
	covers   func(*Charge) bool // whether it is for the envelope's flavor and selector
}

// balance is what one limit on GPUs, together with one on GPU-hours, still allows. It is empty once the hours are
// spent.
type balance struct {
	left  int // GPUs
	asked int // by how many that are gone through
	spent bool
}

func (b *balance) exceeded() bool { return b.asked > b.left }

// unbounded is more GPUs than there can be.
const unbounded = 1 << 40

func newBalance(most int, maxHours *int64, spent Spend) *balance {
	if spentOut(maxHours, spent) {
		return &balance{spent: true}
	}
	return &balance{left: most}
}

// walletOf returns the wallet of an envelope, with the balances of aggregate caps, which envelopes share, by Budget and
// name.
func (a *Accounts) walletOf(k Key, caps map[Key]*balance, now time.Time) *wallet {
	e, ok := a.find(k)
	switch {
	case !ok:
		return &wallet{key: k, closed: CauseRemoved}
	case !open(e.Envelope, now):
		return &wallet{key: k, closed: CauseWindow}
	}
	lending := &balance{left: unbounded}
	w := &wallet{key: k, serves: a.related().server(e),
		covers: func(c *Charge) bool { return a.nodes.covered(e, c) }}
	w.balances = append(w.balances, newBalance(int(e.Concurrency), e.MaxGPUHours, a.spentOn(k, now)))
	if l := e.Lending; l != nil {
		most := unbounded
		if l.MaxConcurrency != nil {
			most = int(*l.MaxConcurrency)
		}
		lending = newBalance(most, l.MaxGPUHours, a.spentOn(k, now, holderBorrower))
	}
	spec := &a.budgets[k.Budget].Spec
	for i := range spec.AggregateCaps {
		if c := &spec.AggregateCaps[i]; slices.Contains(c.Envelopes, e.Name) {
			w.balances = append(w.balances, a.capBalance(Key{k.Budget, c.Name}, c, caps, now))
		}
	}
	w.lent = append(slices.Clone(w.balances), lending)
	return w
}

func (a *Accounts) capBalance(key Key, c *rqv1.AggregateCap, caps map[Key]*balance, now time.Time) *balance {
	if caps[key] == nil {
		most := unbounded
		if c.MaxConcurrency != nil {
			most = int(*c.MaxConcurrency)
		}
		var spent Spend
		for _, name := range c.Envelopes {
			spent += a.spentOn(Key{key.Budget, name}, now)
		}
		caps[key] = newBalance(most, c.MaxGPUHours, spent)
	}
	return caps[key]
}

// refuses says why nothing is allowed to a charge, however old it is; empty when some may be.
func (w *wallet) refuses(c *Charge, limits []*balance) Cause {
	switch {
	case w.closed != "":
		return w.closed
	case !w.serves(c.Owner):
		return CauseWithdrawn
	case !w.covers(c):
		return CauseReach
	case slices.ContainsFunc(limits, func(b *balance) bool { return b.spent }):
		return CauseHours
	}
	return ""
}

func (a *Accounts) spentOn(k Key, now time.Time, which ...holder) Spend {
	at := a.accounts[k]
	if at == nil {
		return 0
	}
	if len(which) == 0 {
		which = anybody
	}
	return at.spentBy(now, which...)
}

func spentOut(most *int64, spent Spend) bool { return most != nil && spent >= hours(*most) }

// open reports whether an instant is in an envelope's window.
func open(e *rqv1.Envelope, now time.Time) bool {
	return (e.Start == nil || !now.Before(e.Start.Time)) && (e.End == nil || now.Before(e.End.Time))
}
