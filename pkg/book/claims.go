package book

import (
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// claims is the money that Runs are about to be paid with which get pods now: nothing is charged before they have
// places, and until then others are not to get pods for the same money.
type claims struct {
	accounts *budget.Accounts
	of       map[*gang]claim
	gpus     map[purseKey]int
}

// claim is one Run's, until it has places, is refused or is gone.
type claim struct {
	from []share
	// since is when it was first seen that the Run has it; lapsed says that it has taken too long since.
	since  time.Time
	lapsed bool
}

// share is what one Budget is going to pay.
type share struct {
	purseKey
	gpus int
}

// purseKey is a Budget's money for one flavor.
type purseKey struct{ budget, flavor string }

// claimLasts is how long a Run may take from having a claim to having places: its pod may never be made.
const claimLasts = 10 * time.Second

func newClaims(accounts *budget.Accounts) *claims {
	return &claims{accounts: accounts, of: map[*gang]claim{}, gpus: map[purseKey]int{}}
}

// left returns how many GPUs a Budget could pay for by its concurrency alone, beside what is claimed of it.
func (c *claims) left(k purseKey) int {
	return max(0, c.accounts.Headroom(k.budget, k.flavor)-c.gpus[k])
}

// leftOf returns how many several Budgets could.
func (c *claims) leftOf(payers []string, flavor string) (gpus int) {
	for _, name := range payers {
		gpus += c.left(purseKey{name, flavor})
	}
	return gpus
}

// put has a gang claim GPUs of the Budgets that it may ask, as far as there are so many. One whose claim has lapsed
// gets no other.
func (c *claims) put(g *gang, payers []string, gpus int) {
	c.release(g)
	its := c.of[g]
	if its.lapsed {
		return
	}
	for _, name := range payers {
		k := purseKey{name, g.full.Flavor}
		if n := min(gpus, c.left(k)); n > 0 {
			c.gpus[k] += n
			gpus -= n
			its.from = append(its.from, share{k, n})
		}
	}
	c.of[g] = its
}

// release has nothing be kept for a gang for the moment, and returns the Budgets of which something was.
func (c *claims) release(g *gang) (budgets []string) {
	its, has := c.of[g]
	if !has {
		return nil
	}
	for _, s := range its.from {
		c.gpus[s.purseKey] -= s.gpus
		if c.gpus[s.purseKey] == 0 {
			delete(c.gpus, s.purseKey)
		}
		budgets = append(budgets, s.budget)
	}
	its.from = nil
	c.of[g] = its
	return budgets
}

// drop has a gang have no claim, and returns the Budgets of which it had something.
func (c *claims) drop(g *gang) (budgets []string) {
	budgets = c.release(g)
	delete(c.of, g)
	return budgets
}

// unclaim has a gang that has not used its claim give it up: others may be paid.
func (w *waitlist) unclaim(g *gang) { w.wakeBudgets(w.claims.drop(g)) }

func (w *waitlist) wakeBudgets(names []string) {
	for _, name := range names {
		w.wakeBudget(name)
	}
}

// lapse has those give their claims up who have had them for too long.
func (w *waitlist) lapse(now time.Time) {
	var late []*gang
	for g, c := range w.claims.of {
		switch {
		case c.lapsed:
		case c.since.IsZero() || c.since.After(now):
			c.since = now
			w.claims.of[g] = c
		case !now.Before(c.since.Add(claimLasts)):
			late = append(late, g)
		}
	}
	slices.SortFunc(late, byAge)
	for _, g := range late {
		w.wakeBudgets(w.claims.release(g))
		w.claims.of[g] = claim{lapsed: true}
	}
}

// nextLapse tells when a claim is next to be looked at.
func (w *waitlist) nextLapse(e *earliest, now time.Time) {
	for _, c := range w.claims.of {
		switch {
		case c.lapsed:
		case c.since.IsZero():
			e.by(now)
		default:
			e.by(c.since.Add(claimLasts))
		}
	}
}
