package book

import (
	"slices"
	"time"
)

// reorder gives gangs that wait other places. Whoever is looked at again since it has come further to the front is so
// before others.
func (w *waitlist) reorder(to map[*gang]spot) {
	if len(to) == 0 {
		return
	}
	moved := make([]*gang, 0, len(to))
	for g := range to {
		moved = append(moved, g)
	}
	slices.SortFunc(moved, byPlace)
	roused, since := map[*gang]bool{}, map[spot]time.Time{}
	for _, g := range moved {
		since[g.place] = g.since
		roused[g] = w.roused.remove(g)
		w.lift(g)
	}
	for _, g := range moved {
		if to[g].compare(g.place) < 0 {
			w.soonAgain(g)
		}
		g.waitsAs(to[g], since[to[g]])
		g.place, g.seen = to[g], min(g.seen, 0) // its date rests on whom it comes before
		if g.queue != nil {
			g.queue.swapped = true
		}
	}
	for _, g := range moved {
		if roused[g] {
			w.roused.add(g)
		}
		w.lower(g)
		for _, budget := range w.debts.around(g) {
			w.wakeOwing(budget)
		}
	}
	w.moved++
}

// waitsAs has the wait for a turn go with a place: who had it waited since an instant, which is zero for one that has
// not been refused yet, and not before the place began.
func (g *gang) waitsAs(place spot, since time.Time) {
	switch {
	case !since.IsZero():
		g.since = since
	case !g.since.IsZero():
		g.since = latest(g.since, place.since)
	}
}

// lift takes a gang out of the lines that it is in, and lower puts it back, where it has another place by then.
func (w *waitlist) lift(g *gang) {
	if l := g.purse.line; l != nil {
		l.remove(g)
	}
	f := &g.filed
	if !f.listed {
		return
	}
	w.gangs.remove(g)
	if f.inLine {
		w.flavorLine(f.of.flavor).remove(g)
		if f.dateless == nil {
			w.queueOf(f.of).line.remove(g)
		}
	}
	if c := f.crowd; c != nil {
		if c.line.before(g) < c.next {
			c.next--
		}
		c.line.remove(g)
	}
}

func (w *waitlist) lower(g *gang) {
	if l := g.purse.line; l != nil {
		l.add(g)
	}
	f := &g.filed
	if !f.listed {
		return
	}
	w.gangs.add(g)
	if f.inLine {
		w.flavorLine(f.of.flavor).add(g)
		if f.dateless == nil {
			w.queueOf(f.of).line.add(g)
		}
	}
	if c := f.crowd; c != nil {
		c.next = min(c.next, c.line.add(g))
	}
}
