package book

import (
	"cmp"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/queueorder"
)

// spot is where a gang stands among those that wait: since when, then by namespace and name (R30). No two have one.
type spot struct {
	since           time.Time
	namespace, name string
}

func (p spot) compare(q spot) int {
	return cmp.Or(p.since.Compare(q.since), strings.Compare(p.namespace, q.namespace), strings.Compare(p.name, q.name))
}

// byPlace orders gangs that wait.
func byPlace(x, y *gang) int { return x.place.compare(y.place) }

// placeAt returns the place of a gang that waits since an instant.
func (g *gang) placeAt(since time.Time) spot { return spot{since.UTC(), g.run.Namespace, g.run.Name} }

// byRecord is the place that a gang has by its Run: by age, or by what its status says.
func (g *gang) byRecord() spot {
	if since := g.run.Status.PlaceSince; since != nil {
		return g.placeAt(since.Time)
	}
	return g.placeAt(g.run.QueuedSince())
}

// placeSince returns since when a gang has its place, where that is not its Run's age; nil otherwise.
func (g *gang) placeSince() *time.Time {
	if g.own.since.Equal(g.run.CreationTimestamp.Time) {
		return nil
	}
	since := g.own.since
	return &since
}

// order gives those of the gangs of one owner that wait for the same their places (R44). A gang has a place of its own,
// which is that by age until it has started from the place of another: who gave way to it has its place then, for good,
// or an owner could have one old Run that never starts let all its new ones pass.
type order struct {
	mail   *mailbox
	roster *roster

	lines map[lineKey]*ownLine
	// moved are lines that are to be put in order, and left gangs that are in none any more.
	moved map[lineKey]bool
	left  map[*gang]bool
}

// lineKey is what the gangs of an owner wait for that may exchange places.
type lineKey struct {
	owner  rqv1.Owner
	flavor string
	what   shortage
}

// ownLine is those gangs, by their own places, and how many of them have each PriorityClass: of one class nobody gives
// way.
type ownLine struct {
	gangs   []*gang
	classes map[string]int
}

func newOrder(mail *mailbox, roster *roster) *order {
	return &order{mail: mail, roster: roster, lines: map[lineKey]*ownLine{}, moved: map[lineKey]bool{},
		left: map[*gang]bool{}}
}

// queued is what a gang's place depends on.
type queued struct {
	in      bool // it is in a line
	line    lineKey
	waiting queueorder.Waiting
	class   string
}

func byOwnPlace(x, y *gang) int { return x.own.compare(y.own) }

// lacksForPlace returns what a gang waits for, as far as that decides with whom it may exchange its place. Whether
// money is kept for others that it would have follows from its place: so it goes on waiting for what it did before it
// knew of that, or each exchange would put it in another line, where it is taken back.
func (g *gang) lacksForPlace() shortage {
	switch {
	case !g.refusalKnown().Reserved:
		return g.scarce().what
	case g.queued.in:
		return g.queued.line.what
	}
	return ofGPUs
}

// queuedFor returns what a gang waits for, if it merely waits, and could start as far as is known: who never fits, or
// whose pods the API server does not take, stands in nobody's way and has no place to give.
func (g *gang) queuedFor() (lineKey, bool) {
	if !g.merelyWaits() || g.suspended() || g.shape != nil || g.run.DeletionTimestamp != nil || g.denied() {
		return lineKey{}, false
	}
	key := lineKey{g.run.Spec.Owner, g.full.Flavor, ofGPUs}
	switch {
	case g.refusal != nil && g.refusal.NeedsNodes():
		return lineKey{}, false
	case g.refusal != nil, g.run.Status.Refusal != nil:
		key.what = g.lacksForPlace()
	}
	return key, true
}

// note has a gang be in the line that it belongs to.
func (o *order) note(g *gang) {
	is := o.queuedAs(g)
	if is == g.queued {
		return
	}
	if was := g.queued; was.in {
		o.remove(g)
		if !is.in && g.run != nil && (g.underWay() || g.activates() || g.started()) {
			o.keeps(g, was.line)
		}
	}
	g.queued = is
	if is.in {
		o.add(g)
	} else {
		o.left[g] = true
	}
}

// queuedAs returns what a gang's place depends on.
func (o *order) queuedAs(g *gang) (out queued) {
	if g.run == nil {
		return out
	}
	out.line, out.in = g.queuedFor()
	if out.in {
		out.waiting, out.class = o.waiting(g), g.run.Spec.PriorityClassName
	}
	return out
}

func (o *order) waiting(g *gang) queueorder.Waiting {
	p := o.roster.priorities.of(g.run)
	return queueorder.Waiting{Priority: p.Value, Keeps: p.Missing, GPUs: g.full.HeldGPUs()}
}

// keeps has a gang keep the place that it has left its line from, and who gave way to it that one's.
func (o *order) keeps(g *gang, from lineKey) {
	l := o.lines[from]
	if l == nil || g.place.compare(g.own) >= 0 || !o.roster.open {
		return
	}
	at, found := slices.BinarySearchFunc(l.gangs, g.place, func(x *gang, p spot) int { return x.own.compare(p) })
	if !found {
		return
	}
	other := l.gangs[at]
	o.remove(other)
	other.own = other.placeAt(g.own.since)
	o.add(other)
	g.own = g.placeAt(g.place.since)
	o.mail.reconcile(keyOf(other.run), lane.Date)
	o.mail.reconcile(keyOf(g.run), lane.Date)
}

// adopt takes the own place of a gang from its Run's record: of one that is new to this process, and of any as long as
// another process decides.
func (o *order) adopt(g *gang, isNew bool) {
	if isNew {
		g.own = g.byRecord()
		g.place = g.own
	} else if own := g.byRecord(); !o.roster.open && own != g.own {
		o.goes(g, own)
	}
}

// stoodStill has the own place of a gang be later by as long as its Run was suspended, once its status says so (R39).
func (o *order) stoodStill(g *gang, before int64) {
	if by := g.run.Status.SuspendedSeconds - before; by > 0 && o.roster.open {
		o.goes(g, g.placeAt(g.own.since.Add(time.Duration(by)*time.Second)))
	}
}

// goes gives a gang another own place.
func (o *order) goes(g *gang, own spot) {
	was := g.queued.in
	if was {
		o.remove(g)
	}
	g.own = own
	if was {
		o.add(g)
	} else {
		o.left[g] = true
	}
}

// starts has the own place of a gang be that by age again, whose Run has started, or by when its time was last over: it
// has it if it comes to wait again.
func (o *order) starts(g *gang) {
	o.note(g)
	o.comesLast(g)
}

// comesLast has the own place of a gang that is in no line be by when its Run's time was over (R22), if it was.
func (o *order) comesLast(g *gang) {
	g.own, g.stoodBack = g.placeAt(g.run.QueuedSince()), time.Time{}
	o.left[g] = true
}

func (o *order) add(g *gang) {
	l := o.lines[g.queued.line]
	if l == nil {
		l = &ownLine{classes: map[string]int{}}
		o.lines[g.queued.line] = l
	}
	at, _ := slices.BinarySearchFunc(l.gangs, g, byOwnPlace)
	l.gangs = slices.Insert(l.gangs, at, g)
	l.classes[g.queued.class]++
	o.moved[g.queued.line] = true
}

func (o *order) remove(g *gang) {
	l := o.lines[g.queued.line]
	at, found := slices.BinarySearchFunc(l.gangs, g, byOwnPlace)
	if !found {
		return
	}
	l.gangs = slices.Delete(l.gangs, at, at+1)
	l.classes[g.queued.class]--
	if l.classes[g.queued.class] == 0 {
		delete(l.classes, g.queued.class)
	}
	o.moved[g.queued.line] = true
	if len(l.gangs) == 0 {
		delete(o.lines, g.queued.line)
	}
}

// settle returns the gangs that are to have another place, since their lines have changed.
func (o *order) settle() map[*gang]spot {
	if len(o.moved)+len(o.left) == 0 {
		return nil
	}
	to := map[*gang]spot{}
	for g := range o.left {
		if !g.queued.in && g.place != g.own {
			to[g] = g.own
		}
	}
	for key := range o.moved {
		if l := o.lines[key]; l != nil {
			l.settle(to)
		}
	}
	clear(o.left)
	clear(o.moved)
	return to
}

// settle notes which gangs of a line are to have another place. Where all have one class each has its own.
func (l *ownLine) settle(to map[*gang]spot) {
	var places []int
	if len(l.classes) > 1 {
		waiting := make([]queueorder.Waiting, len(l.gangs))
		for i, g := range l.gangs {
			waiting[i] = g.queued.waiting
		}
		places = queueorder.Places(waiting)
	}
	for i, g := range l.gangs {
		at := g.own
		if places != nil {
			at = l.gangs[places[i]].own
		}
		if g.place != at {
			to[g] = at
		}
	}
}

// passes reports whether a gang may have what is kept for another that has not started: it is its owner's, asks for no
// more, and has a higher priority (R44).
func (o *order) passes(g, other *gang) bool {
	if g.run.Spec.Owner != other.run.Spec.Owner || g.run.Spec.PriorityClassName == other.run.Spec.PriorityClassName {
		return false
	}
	is, was := o.waiting(g), o.waiting(other)
	return is.Priority > was.Priority && is.GPUs <= was.GPUs && !was.Keeps
}

// wouldTake returns the place that a gang would have which has been refused, if its Run were submitted: before the one
// whose place it takes.
func (o *order) wouldTake(g *gang) spot {
	l := o.lines[lineKey{g.run.Spec.Owner, g.full.Flavor, g.lacksForPlace()}]
	if l == nil {
		return g.own
	}
	var waiting []queueorder.Waiting
	var own []spot
	for _, other := range l.gangs {
		if other.run.UID != g.run.UID {
			waiting, own = append(waiting, other.queued.waiting), append(own, other.own)
		}
	}
	at, _ := slices.BinarySearchFunc(own, g.own, spot.compare)
	taken := queueorder.Places(slices.Insert(waiting, at, o.waiting(g)))[at]
	if taken >= at {
		return g.own
	}
	before := own[taken]
	before.since = before.since.Add(-1)
	return before
}
