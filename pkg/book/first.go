package book

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Small Runs of an owner would take what frees of its money bit by bit, and a large one would wait for ever. So what
// the owner's own envelopes have, and what comes back to them, is kept for the first that waits for it, once it has
// waited for the lead, if they could pay for it by themselves (R54). It is kept as what a Run with a date is to be paid
// from, but for two things: a date may be as far off as it likes, and there may be none.

// purseOf is the money of one owner for GPUs of a flavor.
type purseOf struct {
	owner  rqv1.Owner
	flavor string
}

// moneyLines are the gangs that wait for money, in order of their places, by whose money of their own it would be.
type moneyLines map[purseOf]*moneyLine

type moneyLine struct {
	line
	first *gang // for whom something is kept; nil where nothing is
}

// wanting is where a gang stands that waits for money, and what its owner's envelopes could pay for of it.
type wanting struct {
	in bool
	of purseOf
	// left says that there was enough for it, and that it has not come for that in time.
	left  bool
	alone alone
}

// alone is what its owner's own envelopes could pay for of a gang, as it was found, and on what that rests.
type alone struct {
	known        bool
	funds, nodes int64
	generation   int64
	full         plan.Demand
	at           time.Time
	shares       []plan.Share
}

// wantsMoney reports whether a gang merely waits, and money is what it lacks: as this process has found, or as its
// Run's status says while nobody has looked. For whom it is kept it goes on being kept while there is enough of it and
// no room, or small Runs would take it, and the room, again and again.
func (g *gang) wantsMoney() (purseOf, bool) {
	if !g.merelyWaits() || g.suspended() || g.shape != nil || g.run.DeletionTimestamp != nil ||
		g.refusal == nil && (g.run.Status.Refusal == nil || g.purse.left) {
		return purseOf{}, false
	}
	r := g.refusalKnown()
	return purseOf{g.run.Spec.Owner, g.full.Flavor}, r.LacksMoney() || g.keeping != nil && r.AwaitsOthers()
}

// note has a gang be in the lines that it belongs to. For one that wants no money any more none is kept.
func (w *waitlist) note(g *gang) {
	w.order.note(g)
	g.purse.left = g.purse.left && g.refusal == nil
	of, wants := g.wantsMoney()
	if g.purse.in && !(wants && of == g.purse.of) {
		w.unwant(g)
		if g.keeping != nil {
			w.owe(g)
		}
	}
	if wants && !g.purse.in {
		g.purse.in, g.purse.of = true, of
		if w.money[of] == nil {
			w.money[of] = &moneyLine{}
		}
		w.money[of].add(g)
	}
}

// unwant has a gang be in no line for money.
func (w *waitlist) unwant(g *gang) {
	l := w.money[g.purse.of]
	l.remove(g)
	if l.first == g {
		l.first = nil
	}
	if len(l.line) == 0 {
		delete(w.money, g.purse.of)
	}
	g.purse.in = false
}

// keepFor returns what is kept for a gang that is first in its owner's line: nothing where it has a date that is near
// enough for what it is to be paid from to be kept until then for that alone (R18), or is not first.
func (w *waitlist) keepFor(g *gang) *forecast.Promise {
	at, far := g.far(w.args, latest(g.looked, w.debts.asked))
	if !far || !g.purse.in || w.money[g.purse.of].first != g {
		return nil
	}
	out := &forecast.Promise{At: at}
	for _, share := range g.purse.alone.shares {
		out.Paid = append(out.Paid, forecast.Paid{Payer: share.Payer, Relation: rqv1.RelationOwn, GPUs: share.GPUs})
	}
	return out
}

// far returns the date of a gang that is further off than money is kept for, zero where it has none; false where it has
// one that is nearer.
func (g *gang) far(args *config.Args, now time.Time) (at time.Time, far bool) {
	p := g.promised()
	if p == nil {
		return at, true
	}
	return p.At, p.At.After(now.Add(args.MoneyHorizon.Duration))
}

// savers say for whom owners' money is kept.
type savers struct {
	args    *config.Args
	nodes   *nodeTable
	waiting *waitlist
	due     earliest // when another may come to be first, although nothing else changes
	// effort is what is left of mostEffort in this sweep, and turn the line with which the next one begins: the first of
	// which a gang was not looked at for want of it.
	effort int
	turn   purseOf
}

// A sweep may take no longer than others can wait for the lock. What a look at a gang costs is counted, and far more
// where it has to look at all nodes. What is known is looked at again with half of that at most, so that new ones come.
const (
	mostEffort  = 256
	nodesEffort = 64
)

// nodesAgain is how often gangs are looked at again because nodes change, which they may do all the time.
const nodesAgain = 30 * time.Second

func (p purseOf) compare(q purseOf) int {
	return cmp.Or(strings.Compare(string(p.owner), string(q.owner)), strings.Compare(p.flavor, q.flavor))
}

// settle finds out for whom money is kept by now.
func (s *savers) settle(now time.Time) {
	s.due, s.waiting.debts.asked, s.effort = earliest{}, now, mostEffort
	purses := slices.SortedFunc(maps.Keys(s.waiting.money), purseOf.compare)
	begin, _ := slices.BinarySearchFunc(purses, s.turn, purseOf.compare)
	s.turn = purseOf{}
	for _, of := range slices.Concat(purses[begin:], purses[:begin]) {
		l := s.waiting.money[of]
		g, all := s.firstOf(l, now)
		if !all && s.turn == (purseOf{}) {
			s.turn = of
		}
		was := l.first
		if was == g && (g == nil || !s.stale(g, now)) {
			continue
		}
		l.first = g
		if was != nil && was != g {
			s.waiting.owe(was)
		}
		if g != nil {
			s.waiting.owe(g)
		}
	}
}

// next tells when money may be kept for another although nothing has changed.
func (s *savers) next(e *earliest) {
	if !s.due.at.IsZero() {
		e.by(s.due.at)
	}
}

// firstOf returns the first of a line that has waited for long enough, and that its owner's envelopes could pay for;
// nil where there is none. It reports also whether it has looked at all whom it had to look at: if not, who was first
// stays so.
func (s *savers) firstOf(l *moneyLine, now time.Time) (first *gang, all bool) {
	all = true
	for _, g := range l.line {
		if _, wants := g.wantsMoney(); !wants {
			continue
		}
		if from := waitsSince(g.run, now).Add(s.args.ReservationLead.Duration); now.Before(from) {
			s.due.by(from)
			continue
		}
		all = s.alone(g, now) && all
		switch is := &g.purse.alone; {
		case !is.known:
			return l.stays(), false
		case len(is.shares) > 0:
			return g, all
		}
	}
	return nil, all
}

// stays returns who is first of a line as long as that has not been found anew.
func (l *moneyLine) stays() *gang {
	if l.first == nil {
		return nil
	}
	if _, wants := l.first.wantsMoney(); !wants {
		return nil
	}
	return l.first
}

// alone finds out what its owner's own envelopes could pay for of a gang while nobody holds anything: nothing where
// they could not pay for all of it, or the nodes that there are could not hold it. It reports whether that is known as
// well as it is to be by now.
func (s *savers) alone(g *gang, now time.Time) (fresh bool) {
	is, w := &g.purse.alone, s.waiting
	on := alone{known: true, funds: w.funds, nodes: w.nodes[g.full.Flavor], generation: g.run.Generation, full: g.full,
		at: now}
	switch again := is.at.Add(nodesAgain); {
	case is.same(&on) && is.nodes == on.nodes && now.Before(is.at.Add(datelessMaxAge)): // GPU-hours are spent meanwhile
		return true
	case is.same(&on) && is.nodes != on.nodes && now.Before(again):
		s.due.by(again)
		return true
	case s.effort <= 0, is.known && s.effort <= mostEffort/2:
		s.due.by(now.Add(sweepPeriod))
		return false
	}
	s.effort--
	on.shares = s.nodes.payers(now).Alone(g.full.Least(), g.run.Spec.MaxDuration(), func() func(string) bool {
		s.effort -= nodesEffort
		pod := g.sample()
		if pod == nil {
			pod = podOf(g.run)
		}
		return s.nodes.rejected(g, pod)
	})
	if slices.Equal(on.shares, is.shares) {
		on.shares = is.shares
	}
	*is = on
	return true
}

func (a *alone) same(b *alone) bool {
	return a.known && a.funds == b.funds && a.generation == b.generation && a.full == b.full
}

// stale reports whether something else is to be kept for the first of a line than is.
func (s *savers) stale(g *gang, now time.Time) bool {
	at, far := g.far(s.args, now)
	if far && !at.IsZero() {
		s.due.by(at.Add(-s.args.MoneyHorizon.Duration))
	}
	is, shares := g.keeping, g.purse.alone.shares
	if is == nil || !far {
		return (is == nil) == far
	}
	if s.waiting.debts.wants(g) != g.full.Least().HeldGPUs() {
		return true
	}
	return !is.At.Equal(at) || !slices.EqualFunc(is.Paid, shares, func(p forecast.Paid, s plan.Share) bool {
		return p.Payer == s.Payer && p.GPUs == s.GPUs
	})
}
