package book

import (
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// debts are what envelopes are to pay to gangs that wait and have a date, by date, or are first in their owner's line.
// It is kept from those who come after, and from growth, since cuts cannot bring money back (R18, R54). They change
// with promises, and with who is first, alone, so that a plan looks at nothing but what the envelopes owe that could
// pay for it.
type debts struct {
	accounts *budget.Accounts
	seats    *seating
	args     *config.Args
	order    *order
	asked    time.Time // when something was asked to be kept last
	of       map[budget.Key][]debt
	by       map[*gang][]owing  // the same by whom it is owed to
	ousts    map[*gang]oust     // the Runs that go for a gang, as is certain
	ousters  map[string][]*gang // the same by who goes
}

type debt struct {
	to *gang
	budget.Owed
}

// oust is which Runs go for a gang, and when, in order of their names.
type oust struct {
	at   time.Time
	runs []string
}

func compareDebts(x, y debt) int { return budget.CompareOwed(x.Owed, y.Owed) }

func newDebts(args *config.Args, accounts *budget.Accounts, order *order) *debts {
	return &debts{args: args, accounts: accounts, order: order, of: map[budget.Key][]debt{}, by: map[*gang][]owing{},
		ousts: map[*gang]oust{}, ousters: map[string][]*gang{}}
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
		if !slices.ContainsFunc(after, was.stands) {
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
	eased = append(eased, d.oust(g, p)...)
	slices.Sort(eased)
	return slices.Compact(eased)
}

// oust has Runs go for a gang that go by what it is promised, whatever is drawn, and no others. What is owed to those
// that have dates too is kept until then. It returns the Budgets that owe less by that than they did.
func (d *debts) oust(g *gang, p *forecast.Promise) (eased []string) {
	was, is := d.ousts[g], oust{}
	if p != nil && g.run != nil {
		is = oustBy(p)
	}
	for _, run := range was.runs {
		left := slices.DeleteFunc(d.ousters[run], func(other *gang) bool { return other == g })
		d.ousters[run] = left
		if len(left) == 0 {
			delete(d.ousters, run)
		}
	}
	delete(d.ousts, g)
	if len(is.runs) > 0 {
		d.ousts[g] = is
	}
	fresh := map[string]bool{}
	for _, run := range is.runs {
		d.ousters[run] = append(d.ousters[run], g)
		if _, went := slices.BinarySearch(was.runs, run); !went || is.at.Before(was.at) {
			fresh[run] = true
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	for _, owing := range d.by {
		for i := range owing {
			if is := &owing[i]; fresh[is.Run] {
				eased = append(eased, is.payer.Budget)
			}
		}
	}
	return eased
}

func oustBy(p *forecast.Promise) oust {
	out := oust{at: p.At}
	for _, c := range certainOf(p) {
		out.runs = append(out.runs, named(c.Run).String())
	}
	slices.Sort(out.runs)
	return out
}

// goes returns when a Run goes again that something is owed to, for another that comes first of a gang too; zero where
// that is not certain.
func (d *debts) goes(o *debt, g *gang, grows bool) (at time.Time) {
	for _, by := range d.ousters[o.Run] {
		p := by.owedBy()
		if comesFirst(by, g, grows) && p.At.After(o.At) && (at.IsZero() || p.At.Before(at)) {
			at = p.At
		}
	}
	return at
}

// owing is what one envelope owes by one promise.
type owing struct {
	payer budget.Key
	debt
}

// wants returns how much envelopes owe a gang together at most; 0 where they owe it nothing.
func (d *debts) wants(g *gang) int {
	if len(d.by[g]) == 0 {
		return 0
	}
	return d.by[g][0].Wants
}

// stands reports whether as much is owed by what is owed now: then nobody else may have more. A date or an end that is
// sooner may leave them more, since less is spent until then.
func (o *owing) stands(is owing) bool {
	return is.payer == o.payer && is.Relation == o.Relation && is.GPUs >= o.GPUs && is.At.Equal(o.At) &&
		is.MaxDuration == o.MaxDuration && is.First == o.First && (!o.First || is.Wants >= o.Wants)
}

func (d *debts) owedBy(g *gang, p *forecast.Promise) []owing {
	if p == nil || g.run == nil {
		return nil
	}
	var out []owing
	first, within := p == g.keeping, time.Duration(0)
	if first {
		within = d.args.ReservationLead.Duration
	}
	for _, paid := range paidBy(p) {
		out = append(out, owing{paid.Payer, debt{g, budget.Owed{Run: keyOf(g.run).String(), At: p.At, First: first,
			Within: within, GPUs: paid.GPUs, Wants: g.full.Least().HeldGPUs(),
			Rate: d.accounts.RateOf(paid.Role()), Relation: paid.Relation, MaxDuration: g.run.Spec.MaxDuration()}}})
	}
	return out
}

// comesFirst reports whether what is owed to another is kept from a gang that is to start, or to grow: those who start
// come in the order of their places, and all of them come before growth. Who has its place already has its money.
func comesFirst(to, g *gang, grows bool) bool {
	return to != g && !to.started() && !to.underWay() && (grows || byPlace(to, g) < 0)
}

// keptFrom reports whether that is so of something that is owed: nothing is kept for the first of an owner's line from
// those who may take its place (R44). They do not take it, since it waits for other than they.
func (d *debts) keptFrom(o *debt, g *gang, grows bool) bool {
	return comesFirst(o.to, g, grows) && !(o.First && !grows && d.order.passes(g, o.to))
}

// yields reports whether a gang leaves to others what is kept for them: it starts, with nothing that was paid before or
// decided by a plan that has left it to them.
func (g *gang) yields() bool { return !g.started() && !g.keepsRoom() && !g.activates() }

// keeps returns what an envelope keeps from a gang that is to start, or to grow, for those who come before it and have
// dates that are not too far off, or are first in their owner's line; nil where none keeps anything.
func (d *debts) keeps(g *gang, grows bool, now time.Time) func(budget.Key) []budget.Owed {
	d.asked = now
	return d.horizon(d.before(g, grows), now)
}

// horizon leaves what is kept by now of what is owed.
func (d *debts) horizon(owed func(budget.Key) []budget.Owed, now time.Time) func(budget.Key) []budget.Owed {
	if owed == nil {
		return nil
	}
	return func(k budget.Key) []budget.Owed { return budget.OwedAt(owed(k), now, d.args.MoneyHorizon.Duration) }
}

// keepsFromBelated is keeps for a rank of a group that runs which comes late, without what is kept for the first of its
// owner's line that waits for what the group itself is to give back.
func (d *debts) keepsFromBelated(g *gang, now time.Time) func(budget.Key) []budget.Owed {
	d.asked = now
	return d.horizon(d.beforeAs(g, true, func(o *debt) bool {
		return d.keptFrom(o, g, true) && !(o.First && d.awaits(o.to, g))
	}), now)
}

// awaits reports whether the first of its owner's line waits for what a group may give back: money, from one of the
// envelopes that pay for the group, or room.
func (d *debts) awaits(first, g *gang) bool {
	if r := first.refusal; r != nil && r.AwaitsOthers() {
		return true
	}
	return slices.ContainsFunc(g.active.members, func(m *member) bool {
		if m == nil || !slices.ContainsFunc(d.by[first], func(o owing) bool { return o.payer == m.payer.key }) {
			return false
		}
		_, open := d.accounts.Charge(d.seats.leaseOf(m.pod).String())
		return open
	})
}

// before returns what an envelope owes to those who come before a gang that is to start, or to grow; nil where none
// owes anybody anything.
func (d *debts) before(g *gang, grows bool) func(budget.Key) []budget.Owed {
	if !grows && !g.yields() {
		return nil
	}
	return d.beforeAs(g, grows, func(o *debt) bool { return d.keptFrom(o, g, grows) })
}

// beforeAs is before by what is kept from it of what is owed.
func (d *debts) beforeAs(g *gang, grows bool, kept func(*debt) bool) func(budget.Key) []budget.Owed {
	if len(d.of) == 0 {
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
			o := of[i]
			if kept(&o) {
				o.Goes = d.goes(&o, g, grows)
				out = append(out, o.Owed)
			}
		}
		known[k] = out
		return out
	}
}

// allBefore returns all that is owed to those who come before a gang, whenever their dates are, by envelope, for who
// goes on without the book.
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

// kept is how many GPUs Budgets keep for others of what they could still pay for, and the last place of those others.
type kept struct {
	gpus int
	to   spot
}

// keepsNothing reports whether nothing is known to be kept from a gang. One that ends by itself may have what is kept
// for others, as a plan finds.
func (d *debts) keepsNothing(g *gang) bool { return len(d.of) == 0 || g.run.Spec.MaxDuration() > 0 }

// kept returns how many GPUs at least the Budgets that a gang asks keep for others: those that they kept when that was
// last asked.
func (d *debts) kept(g *gang) (out kept) {
	owed := d.keeps(g, g.grows() || g.refusal.Spare || g.refusal.Belated, d.asked)
	if owed == nil {
		return out
	}
	for _, name := range g.refusal.Payers {
		out.gpus += d.accounts.Headroom(name, g.full.Flavor, nil) - d.accounts.Headroom(name, g.full.Flavor, owed)
		for k, of := range d.of {
			for i := range of {
				if k.Budget == name && of[i].to.place.compare(out.to) > 0 {
					out.to = of[i].to.place
				}
			}
		}
	}
	return out
}

// around returns the Budgets that may pay for others when a gang has got another place: for those whom it comes after
// by now, if they owe to it, and for itself, if they owe to those whom it comes before.
func (d *debts) around(g *gang) (budgets []string) {
	if len(d.of) == 0 {
		return nil
	}
	for i := range d.by[g] {
		budgets = append(budgets, d.by[g][i].payer.Budget)
	}
	if r := g.refusal; r != nil && r.AboutMoney() {
		budgets = append(budgets, r.Payers...)
	}
	return budgets
}

// claim returns what a gang may claim to be paid for that is to start, or to grow, and what it leaves to others.
func (d *debts) claim(g *gang, kept plan.Kept, now time.Time) plan.Claim {
	c := g.claim(kept)
	c.Owed = d.keeps(g, g.grows(), now)
	return c
}
