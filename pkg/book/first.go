package book

import (
	"cmp"
	"maps"
	"math"
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
	of    purseOf
	first *gang // who is to have what is kept; nil where nobody is
}

// wanting is where a gang stands that waits for money, and what its owner's envelopes could pay for of it.
type wanting struct {
	line *moneyLine // nil for one that is in none
	// left says that there was enough for it, and that it has not come for that in time; idle is since when the first of a
	// line has been neither refused nor given places, zero while it is not so.
	left  bool
	idle  time.Time
	alone alone
}

// alone is what its owner's own envelopes could pay for of a gang, as it was found, and on what that rests.
type alone struct {
	funds, nodes int64
	generation   int64
	full         plan.Demand
	at           time.Time // zero where nobody has looked
	shares       []plan.Share
}

// isFirst reports whether a gang is the first of its owner's line.
func (g *gang) isFirst() bool { return g.purse.line != nil && g.purse.line.first == g }

// wantsMoney reports whether a gang merely waits, and money is what it lacks: as this process has found, or as its
// Run's status says while nobody has looked. Who is first in line is so until it has started, also while there is
// enough and no room, and while it has places that it may still lose: else small Runs would take the money again and
// again.
func (g *gang) wantsMoney() bool {
	first, r := g.isFirst(), g.refusal
	switch {
	case g.purse.left || g.run == nil || g.run.Status.Phase != rqv1.RunPending || g.opportunistic() || g.keepsRoom() ||
		g.suspended() || g.shape != nil || g.run.DeletionTimestamp != nil || !first && !g.merelyWaits():
		return false
	case r != nil:
		return r.LacksMoney() || first && r.AwaitsOthers()
	}
	return first || g.run.Status.Refusal != nil && g.refusalTold().LacksMoney()
}

// note has a gang be in the lines that it belongs to. For one that wants no money any more none is kept.
func (w *waitlist) note(g *gang) {
	w.order.note(g)
	wants, of := g.wantsMoney(), purseOf{}
	if wants {
		of = purseOf{g.run.Spec.Owner, g.full.Flavor}
	}
	if l := g.purse.line; l != nil && !(wants && of == l.of) {
		w.unwant(g)
		if g.keeping != nil {
			w.owe(g)
		}
	}
	if wants && g.purse.line == nil {
		if w.money[of] == nil {
			w.money[of] = &moneyLine{of: of}
		}
		g.purse.line = w.money[of]
		g.purse.line.add(g)
	}
}

// unwant has a gang be in no line for money.
func (w *waitlist) unwant(g *gang) {
	l := g.purse.line
	l.remove(g)
	if l.first == g {
		l.first = nil
	}
	if len(l.line) == 0 {
		delete(w.money, l.of)
	}
	g.purse.line = nil
}

// keepFor returns what is kept for a gang that is first in its owner's line: nothing where it has a date that is near
// enough for what it is to be paid from to be kept until then for that alone (R18), or is not first. Where it waits for
// room alone it is kept once what it wants, and where it lacks money whatever of it comes first.
func (w *waitlist) keepFor(g *gang) *forecast.Promise {
	now := latest(g.looked, w.debts.asked)
	at, far := g.far(w.args, now)
	if !far || !g.isFirst() {
		return nil
	}
	shares := g.purse.alone.shares
	if r := g.refusal; r != nil && r.AwaitsOthers() && r.Reason != plan.NoRoomWhereFunded {
		shares = plan.Once(w.accounts, g.full.Least(), w.debts.claim(g, nil, now), shares, now)
	}
	out := &forecast.Promise{At: at}
	for _, share := range shares {
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
	// effort is what is left of what a sweep may cost, and each what one line may of it, down to rest. last is the line in
	// which a gang was looked at last: the next sweep begins with the one after it.
	effort, each, rest int
	last               purseOf
}

// A sweep may take no longer than others can wait for the lock. What a look at a gang costs is counted, and far more
// where it has to look at all nodes, which it has to once for each line at most.
const (
	mostEffort  = 256
	nodesEffort = 64
)

// nodesAgain is how often gangs are looked at again because nodes change, which they may do all the time.
const nodesAgain = 30 * time.Second

func (p purseOf) compare(q purseOf) int {
	return cmp.Or(strings.Compare(string(p.owner), string(q.owner)), strings.Compare(p.flavor, q.flavor))
}

// settle finds out for whom money is kept by now, and looks at as many as a sweep may.
func (s *savers) settle(now time.Time) { s.walkAll(now, mostEffort, nodesEffort) }

// begin finds it out before anybody else decides, whatever that costs: who were first before are still.
func (s *savers) begin(now time.Time) { s.walkAll(now, math.MaxInt, math.MaxInt) }

func (s *savers) walkAll(now time.Time, effort, each int) {
	s.due, s.waiting.debts.asked, s.effort, s.each = earliest{}, now, effort, each
	purses := slices.SortedFunc(maps.Keys(s.waiting.money), purseOf.compare)
	from, found := slices.BinarySearchFunc(purses, s.last, purseOf.compare)
	if found {
		from++
	}
	for _, of := range slices.Concat(purses[from:], purses[:from]) {
		l, before := s.waiting.money[of], s.effort
		s.keepsFor(l, s.firstOf(l, now), now)
		if s.effort < before {
			s.last = of
		}
	}
}

// keepsFor has money of a line be kept for a gang, and for no other; for nobody where that is nil.
func (s *savers) keepsFor(l *moneyLine, g *gang, now time.Time) {
	was := l.first
	l.first = g
	if was != nil && was != g {
		s.waiting.owe(was)
		s.waiting.note(was)
	}
	if g != nil && s.stale(g, now) {
		s.waiting.owe(g)
	}
}

// next tells when money may be kept for another although nothing has changed.
func (s *savers) next(e *earliest) {
	if !s.due.at.IsZero() {
		e.by(s.due.at)
	}
}

// firstOf returns the first of a line that has waited for long enough, and that its owner's envelopes could pay for;
// nil where there is none. Those are looked at first of whom nothing is known, and then who were longest ago.
func (s *savers) firstOf(l *moneyLine, now time.Time) *gang {
	s.rest = max(0, s.effort-s.each)
	s.comes(l.first, now)
	first, aged := s.walk(l, now)
	if len(aged) == 0 || s.effort <= s.rest {
		if len(aged) > 0 {
			s.due.by(now.Add(sweepPeriod))
		}
		return first
	}
	slices.SortStableFunc(aged, func(x, y *gang) int { return x.purse.alone.at.Compare(y.purse.alone.at) })
	for _, g := range aged {
		if !s.look(g, now) {
			break
		}
	}
	first, _ = s.walk(l, now)
	return first
}

// comes has the first of a line be so no more that could have been planned and has not been in time: its pods do not
// come, or some of them are gone.
func (s *savers) comes(g *gang, now time.Time) {
	switch {
	case g == nil:
		return
	case g.refusal != nil || g.underWay():
		g.purse.idle = time.Time{}
		return
	case g.purse.idle.IsZero():
		g.purse.idle = now
	}
	until := g.purse.idle.Add(s.args.GangDeadline.Duration)
	if now.Before(until) {
		s.due.by(until)
		return
	}
	g.purse.left, g.purse.idle = true, time.Time{}
	s.waiting.note(g)
}

// walk goes through a line up to its first, and returns also whom it has passed that are to be looked at again. While
// nothing is known of somebody, and no look is left, who was first stays so.
func (s *savers) walk(l *moneyLine, now time.Time) (first *gang, aged []*gang) {
	for _, g := range l.line {
		if !g.wantsMoney() {
			continue
		}
		if from := waitsSince(g.run, now).Add(s.args.ReservationLead.Duration); now.Before(from) {
			s.due.by(from)
			continue
		}
		is := &g.purse.alone
		if is.of(g) && s.aged(g, now) {
			aged = append(aged, g)
		}
		if !is.of(g) && !s.look(g, now) {
			return l.stays(), aged
		}
		if len(is.shares) > 0 {
			return g, aged
		}
	}
	return nil, aged
}

// stays returns who is first of a line as long as that has not been found anew.
func (l *moneyLine) stays() *gang {
	if l.first == nil || !l.first.wantsMoney() {
		return nil
	}
	return l.first
}

// aged reports whether a gang is to be looked at again.
func (s *savers) aged(g *gang, now time.Time) bool {
	is, w := &g.purse.alone, s.waiting
	switch again := is.at.Add(nodesAgain); {
	case is.funds != w.funds, is.generation != g.run.Generation, !now.Before(is.at.Add(datelessMaxAge)): // hours are spent
		return true
	case is.nodes == w.nodes[g.full.Flavor]:
		return false
	case now.Before(again):
		s.due.by(again)
		return false
	}
	return true
}

// of reports whether that is known of a gang as it is by now.
func (a *alone) of(g *gang) bool { return !a.at.IsZero() && a.full == g.full }

// look finds out what its owner's own envelopes could pay for of a gang while nobody holds anything: nothing where
// they could not pay for all of it, or the nodes that there are could not hold it. It reports false where it may not.
func (s *savers) look(g *gang, now time.Time) bool {
	if s.effort <= s.rest {
		s.due.by(now.Add(sweepPeriod))
		return false
	}
	s.effort--
	w := s.waiting
	g.purse.alone = alone{funds: w.funds, nodes: w.nodes[g.full.Flavor], generation: g.run.Generation, full: g.full,
		at: now, shares: s.nodes.payers(now).Alone(g.full.Least(), g.run.Spec.MaxDuration(), func() func(string) bool {
			s.effort -= nodesEffort
			pod := g.sample()
			if pod == nil {
				pod = g.model()
			}
			return s.nodes.rejectedAll(g, pod)
		})}
	return true
}

// stale reports whether something else is to be kept for the first of a line than is.
func (s *savers) stale(g *gang, now time.Time) bool {
	at, far := g.far(s.args, now)
	if far && !at.IsZero() {
		s.due.by(at.Add(-s.args.MoneyHorizon.Duration))
	}
	is, to := g.keeping, s.waiting.keepFor(g)
	if is == nil || to == nil {
		return is != to
	}
	return s.waiting.debts.wants(g) != g.full.Least().HeldGPUs() || !is.At.Equal(to.At) || !slices.Equal(is.Paid, to.Paid)
}
