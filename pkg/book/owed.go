package book

import (
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// debts are what envelopes are to pay to gangs that wait and have a date, by date. It is kept from those who come
// after, and from growth, since cuts cannot bring money back (R18). They change with promises alone, so that a plan
// looks at nothing but what the envelopes owe that could pay for it.
type debts struct {
	accounts *budget.Accounts
	of       map[budget.Key][]debt
	by       map[*gang][]owing // the same by whom it is owed to
}

type debt struct {
	to *gang
	budget.Owed
}

func compareDebts(x, y debt) int { return budget.CompareOwed(x.Owed, y.Owed) }

func newDebts(accounts *budget.Accounts) *debts {
	return &debts{accounts: accounts, of: map[budget.Key][]debt{}, by: map[*gang][]owing{}}
}

// set has envelopes owe to a gang what it is promised, and nothing else. It returns the Budgets, sorted, that owe less
// by now, or later: they may pay for others.
func (d *debts) set(g *gang, p *forecast.Promise) (eased []string) {
	before, after := d.by[g], d.owedBy(g, p)
	d.by[g] = after
	if len(after) == 0 {
		delete(d.by, g)
	}
	for _, was := range before {
		if !slices.ContainsFunc(after, func(is owing) bool {
			return is.payer == was.payer && is.Relation == was.Relation && is.GPUs >= was.GPUs && !is.At.After(was.At)
		}) {
			eased = append(eased, was.payer.Budget)
		}
		left := slices.DeleteFunc(d.of[was.payer], func(other debt) bool { return other.to == g })
		d.of[was.payer] = left
		if len(left) == 0 {
			delete(d.of, was.payer)
		}
	}
	for _, is := range after {
		of := d.of[is.payer]
		at, _ := slices.BinarySearchFunc(of, is.debt, compareDebts)
		d.of[is.payer] = slices.Insert(of, at, is.debt)
	}
	slices.Sort(eased)
	return slices.Compact(eased)
}

// owing is what one envelope owes by one promise.
type owing struct {
	payer budget.Key
	debt
}

func (d *debts) owedBy(g *gang, p *forecast.Promise) []owing {
	if p == nil || g.run == nil {
		return nil
	}
	var out []owing
	for _, paid := range paidBy(p) {
		out = append(out, owing{paid.Payer, debt{g, budget.Owed{Run: keyOf(g.run).String(), At: p.At, GPUs: paid.GPUs,
			Rate: d.accounts.RateOf(paid.Role()), Relation: paid.Relation, MaxDuration: g.run.Spec.MaxDuration()}}})
	}
	return out
}

// comesFirst reports whether what is owed to another is kept from a gang that is to start, or to grow: those who start
// come in the order of their places, and all of them come before growth. Who has its place already has its money.
func (d *debt) comesFirst(g *gang, grows bool) bool {
	return d.to != g && !d.to.started() && !d.to.underWay() && (grows || byPlace(d.to, g) < 0)
}

// yields reports whether a gang leaves to others what is kept for them: it starts, with nothing that was paid before or
// decided by a plan that has left it to them.
func (g *gang) yields() bool { return !g.started() && !g.keepsRoom() && !g.activates() }

// before returns what an envelope owes to those who come before a gang that is to start, or to grow; nil where none
// owes anybody anything.
func (d *debts) before(g *gang, grows bool) func(budget.Key) []budget.Owed {
	if len(d.of) == 0 || !grows && !g.yields() {
		return nil
	}
	known := map[budget.Key][]budget.Owed{}
	return func(k budget.Key) []budget.Owed {
		out, looked := known[k]
		if looked {
			return out
		}
		of := d.of[k]
		out = make([]budget.Owed, 0, len(of))
		for i := range of {
			if o := &of[i]; o.comesFirst(g, grows) {
				out = append(out, o.Owed)
			}
		}
		known[k] = out
		return out
	}
}

// allBefore returns all of that, by envelope, for who goes on without the book.
func (d *debts) allBefore(g *gang) map[budget.Key][]budget.Owed {
	owed, out := d.before(g, false), map[budget.Key][]budget.Owed{}
	if owed == nil {
		return out
	}
	for k := range d.of {
		if of := owed(k); len(of) > 0 {
			out[k] = of
		}
	}
	return out
}

// kept returns how many GPUs at least the Budgets that a gang asks keep for others of what they could still pay for.
// One that ends by itself may have more of it, as a plan finds.
func (d *debts) kept(g *gang) (gpus int) {
	if len(d.of) == 0 || g.run.Spec.MaxDuration() > 0 {
		return 0
	}
	owed := d.before(g, g.grows())
	if owed == nil {
		return 0
	}
	for _, name := range g.refusal.Payers {
		gpus += d.accounts.Headroom(name, g.full.Flavor, nil) - d.accounts.Headroom(name, g.full.Flavor, owed)
	}
	return gpus
}

// claim returns what a gang may claim to be paid for that is to start, or to grow, and what it leaves to others.
func (d *debts) claim(g *gang, kept plan.Kept) plan.Claim {
	c := g.claim(kept)
	c.Owed = d.before(g, g.grows())
	return c
}
