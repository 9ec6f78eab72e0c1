package book

import "time"

// standsBackFor is how long a Run whose time was over lets those ahead of it be tried first (R22): what it held has
// just come free, and it would have it again before their pods have been made.
const standsBackFor = 30 * time.Second

// standsBack reports whether a gang whose time was over is not to start yet, since somebody ahead of it is about to be
// tried.
func (x *starter) standsBack(g *gang, now time.Time) bool {
	t := g.run.Status.Timeouts
	if t == nil || g.started() || t.Attempt+1 != g.run.Status.Attempt || g.activates() ||
		g.startedInPart() { // it had its turn
		return false
	}
	if g.stoodBack.IsZero() {
		g.stoodBack = now
	}
	return now.Before(g.stoodBack.Add(standsBackFor)) && x.waiting.triesBefore(g)
}

// triesBefore reports whether somebody who waits for GPUs of the same type ahead of a gang is about to be tried, or has
// been found to be paid for and is to have a pod.
func (w *waitlist) triesBefore(g *gang) bool {
	ahead := func(other *gang) bool { return other.full.Flavor == g.full.Flavor && byPlace(other, g) < 0 }
	for _, other := range w.roused {
		if other.woken && ahead(other) {
			return true
		}
	}
	for i := range w.pledges {
		if p := &w.pledges[i]; p.kept() && ahead(p.gang) {
			return true
		}
	}
	for _, other := range w.gangs {
		if !ahead(other) {
			if byPlace(other, g) >= 0 {
				break
			}
			continue
		}
		if other.unpaid && other.asked {
			return true
		}
	}
	return false
}
