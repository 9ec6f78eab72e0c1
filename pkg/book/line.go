package book

import (
	"container/list"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// line is gangs in the order of their places.
type line []*gang

// before returns how many of a line come before a gang.
func (l line) before(g *gang) int {
	at, _ := slices.BinarySearchFunc(l, g, byPlace)
	return at
}

// add adds a gang, if it is not there, and returns how many come before it.
func (l *line) add(g *gang) int {
	at, found := slices.BinarySearchFunc(*l, g, byPlace)
	if !found {
		*l = slices.Insert(*l, at, g)
	}
	return at
}

// remove removes a gang, and reports whether it was there.
func (l *line) remove(g *gang) bool {
	at, found := slices.BinarySearchFunc(*l, g, byPlace)
	if found {
		*l = slices.Delete(*l, at, at+1)
	}
	return found
}

// standing is where a gang stands in line: how many are ahead of it, and how many of those are rivals, which wait for
// the same as it and may have dates.
type standing struct{ ahead, rivals int }

// scarce is what gangs wait for one after the other. Those that nobody pays for, or that other rules keep from the
// nodes, may be many and have no dates: they take none from those that GPUs alone are short for, nor from those of
// other owners.
type scarce struct {
	flavor string
	what   shortage
	owner  rqv1.Owner // of those who are short of money
}

type shortage int

const (
	ofGPUs shortage = iota
	ofMoney
	ofNodes // that other rules accept
)

// queue is those who wait for the same.
type queue struct {
	// line is those who have dates or may have, and dateless those who have been found to have none, whoever was looked at
	// longest ago first.
	line     line
	dateless *list.List
}

// filing is where a gang that waits is to be found.
type filing struct {
	listed bool // it waits
	// inLine says that it waits for those ahead of it, by flavor and by what is scarce; dateless is where it is among
	// those who have been found to have no date, nil for all others.
	inLine   bool
	of       scarce
	dateless *list.Element
	crowd    *crowd
	rejected string // the flavor of the nodes that other rules keep it from
}

// scarce returns what a gang waits for that has been refused, by its Run's status where the book does not know why.
func (g *gang) scarce() scarce {
	switch r := g.refusalKnown(); {
	case r.AboutMoney() && !r.Elsewhere:
		return scarce{flavor: g.full.Flavor, what: ofMoney, owner: g.run.Spec.Owner}
	case r.Reason == plan.NodesRejected, r.Rejected != nil && r.Rejected.Vain:
		return scarce{flavor: g.full.Flavor, what: ofNodes}
	}
	return scarce{flavor: g.full.Flavor, what: ofGPUs}
}

// inLine reports whether a gang waits for those ahead of it: one that never fits waits for other nodes, and nothing is
// promised to one whose pods are not taken.
func (g *gang) inLine() bool { return g.waits() && !g.refusal.NeedsNodes() && !g.denied() }

// standsInLine reports whether a gang does, or is going to as soon as its leader is there again.
func (g *gang) standsInLine() bool {
	return g.refusal != nil && !g.opportunistic() && g.run.Status.Phase == rqv1.RunPending && g.shape == nil &&
		!g.refusal.NeedsNodes() && !g.denied()
}

// file has a gang that waits be found by what it waits for, which may have changed.
func (w *waitlist) file(g *gang) {
	defer w.note(g)
	f := &g.filed
	if !f.listed {
		return
	}
	w.join(g)
	if g.refusal != nil && g.refusal.Rejected != nil {
		w.countRejected(g, g.full.Flavor)
	} else {
		w.countRejected(g, "")
	}
	stands := g.standsInLine()
	if stands && f.inLine && f.of == g.scarce() {
		return
	}
	w.stepOut(g)
	if stands {
		f.inLine, f.of = true, g.scarce()
		w.flavorLine(f.of.flavor).add(g)
		w.queueOf(f.of).line.add(g)
		w.moved++
	}
}

// unfile has it not be found any more.
func (w *waitlist) unfile(g *gang) {
	w.stepOut(g)
	w.countRejected(g, "")
	w.leave(g)
}

// countRejected counts a gang among those that other rules keep from nodes of a flavor; from none where it is empty.
func (w *waitlist) countRejected(g *gang, flavor string) {
	w.rejected[g.filed.rejected]--
	w.rejected[flavor]++
	g.filed.rejected = flavor
}

// stepOut has a gang be in no line.
func (w *waitlist) stepOut(g *gang) {
	f := &g.filed
	if !f.inLine {
		return
	}
	q := w.queueOf(f.of)
	w.dates(g)
	q.line.remove(g)
	w.flavorLine(f.of.flavor).remove(g)
	if len(q.line) == 0 && q.dateless.Len() == 0 {
		delete(w.queues, f.of)
	}
	f.inLine = false
	w.moved++
}

// dates has a gang be among those who have a date, or may have one.
func (w *waitlist) dates(g *gang) {
	if f := &g.filed; f.dateless != nil {
		q := w.queueOf(f.of)
		q.dateless.Remove(f.dateless)
		f.dateless = nil
		q.line.add(g)
		w.moved++
	}
}

// hasNoDate notes that it has been found that a gang has no date. It takes none from those behind it, and is looked at
// again when something has changed on which that rests, after the others of whom the same was found before.
func (w *waitlist) hasNoDate(g *gang) {
	f := &g.filed
	if !f.inLine {
		return
	}
	q := w.queueOf(f.of)
	if f.dateless != nil {
		q.dateless.MoveToBack(f.dateless)
		return
	}
	q.line.remove(g)
	f.dateless = q.dateless.PushBack(g)
	w.moved++
}

// soonAgain has it be found before others whether a gang has a date that was found to have none.
func (w *waitlist) soonAgain(g *gang) {
	if f := &g.filed; f.dateless != nil {
		w.queueOf(f.of).dateless.MoveToFront(f.dateless)
	}
}

// crowded reports whether so many wait for the same as a gang that they are forecast one after the other.
func (w *waitlist) crowded(g *gang) bool {
	if !g.filed.inLine {
		return false
	}
	q := w.queueOf(g.filed.of)
	return len(q.line)+q.dateless.Len() > dated
}

func (w *waitlist) queueOf(what scarce) *queue {
	q := w.queues[what]
	if q == nil {
		q = &queue{dateless: list.New()}
		w.queues[what] = q
	}
	return q
}

func (w *waitlist) flavorLine(flavor string) *line {
	if w.inFlavor[flavor] == nil {
		w.inFlavor[flavor] = &line{}
	}
	return w.inFlavor[flavor]
}

// inLine returns where a gang stands in line, and how many are in it.
func (w *waitlist) inLine(g *gang) (at standing, all int) {
	all = len(*w.flavorLine(g.full.Flavor))
	if f := &g.filed; f.inLine {
		at = standing{w.flavorLine(f.of.flavor).before(g), w.queueOf(f.of).line.before(g)}
	}
	return at, all
}

// eachInTurn goes through those of whom it may be worked out when they start: in each line those who come first, and
// whoever was found longest ago to have no date.
func (w *waitlist) eachInTurn(visit func(g *gang, at standing)) {
	for _, q := range w.queues {
		for i, g := range q.line[:min(keptDates, len(q.line))] {
			w.looks++
			visit(g, standing{rivals: i})
		}
		for e, n := q.dateless.Front(), 0; e != nil && n < dated; e, n = e.Next(), n+1 {
			w.looks++
			if g := e.Value.(*gang); g.waits() && !g.woken {
				visit(g, standing{rivals: q.line.before(g)})
				break
			}
		}
	}
}

// placeOf returns where a Run would stand in line that has not been submitted, and how many would be in it. A gang of
// the same Run is left aside.
func (w *waitlist) placeOf(of *gang) (at standing, all int) {
	for _, g := range w.gangs {
		if g.full.Flavor != of.full.Flavor || !g.inLine() && !g.saysThatItWaits() || g.run.UID == of.run.UID {
			continue
		}
		all++
		if byPlace(g, of) < 0 {
			at.ahead++
			if g.filed.dateless == nil && g.scarce() == of.scarce() {
				at.rivals++
			}
		}
	}
	return at, all + 1
}

// saysThatItWaits reports whether a gang has been refused a start by its Run's status: a book that decides nothing does
// not know it otherwise.
func (g *gang) saysThatItWaits() bool {
	if g.run == nil || g.opportunistic() || g.run.Status.Phase != rqv1.RunPending || g.run.Status.Refusal == nil {
		return false
	}
	why := g.refusalTold()
	return g.refusal == nil && !why.NeedsNodes() && !why.AboutPods() &&
		g.run.DeletionTimestamp == nil && g.shape == nil
}

// refusalTold returns why a gang was refused by its Run's status, which says so.
func (g *gang) refusalTold() *plan.Refusal {
	told := g.run.Status.Refusal
	return &plan.Refusal{Reason: plan.Reason(told.Reason), Reserved: told.Limit != nil && told.Limit.Reserved != nil}
}

// refusalKnown returns why a gang was refused, by its Run's status where the book does not know.
func (g *gang) refusalKnown() *plan.Refusal {
	if g.refusal != nil {
		return g.refusal
	}
	return g.refusalTold()
}

// mayHaveDate reports whether a gang is forecast that stands so in line.
func (g *gang) mayHaveDate(at standing) bool {
	if g.promise != nil || g.reservation != nil || g.keepsRoom() {
		return at.rivals < keptDates
	}
	return at.rivals < dated
}

// misplaced reports whether a gang is forecast and is not to be, or the other way round, or has come so far that people
// are told.
func (g *gang) misplaced(at standing) bool {
	if g.mayHaveDate(at) {
		return g.queue != nil && g.queue.far
	}
	return g.queue == nil || !g.queue.far || g.queue.past(at.ahead)
}
