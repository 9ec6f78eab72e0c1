package book

import (
	"time"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// queueUp has a gang that was refused be forecast soon, or has it stand in line.
func (v *activations) queueUp(g *gang, now time.Time) {
	if g.activation != nil || v.agenda.dateless(g, now) || g.denied() {
		return
	}
	if g.since.IsZero() {
		g.since = now
	}
	if g.looked.IsZero() {
		g.looked = now
	}
	g.seen, g.woken = -1, false
	if ahead, all := v.waiting.inLine(g); g.mayHaveDate(ahead) {
		v.agenda.signalDue()
	} else {
		v.standBack(g, ahead, all, now)
	}
}

// tellPlaces tells those their places who are too far back to be forecast.
func (v *activations) tellPlaces(now time.Time) {
	v.mu.Lock()
	places, all := map[*gang]int{}, map[string]int{}
	v.waiting.eachInLine(func(g *gang, ahead int) {
		all[g.full.Flavor] = ahead + 1
		if v.agenda.worksOut(g) && !g.mayHaveDate(ahead) && g.misplaced(ahead) {
			places[g] = ahead
		}
	})
	if len(places) == 0 {
		v.mu.unlockUnchanged()
		return
	}
	defer v.mu.Unlock()
	for _, g := range v.waiting.gangs {
		if ahead, stands := places[g]; stands {
			v.standBack(g, ahead, all[g.full.Flavor], now)
		}
	}
}

// standBack has a gang that is too far back have a place in line, and no date.
func (v *activations) standBack(g *gang, ahead, all int, now time.Time) {
	v.note(g, now)
	if g.promise != nil {
		v.agenda.setPromise(g, nil)
	}
	v.standInLine(g, ahead, all, now)
}

// standInLine tells the place of a gang that waits without a date: it is too far back to be forecast, or has been.
func (v *activations) standInLine(g *gang, ahead, all int, now time.Time) {
	if g.queue == nil || g.queue.past(ahead) {
		g.queue = &QueuePlace{Ahead: ahead, Of: all, At: now}
		v.mail.reconcile(keyOf(g.run), lane.Date)
	}
	g.queue.far = !g.mayHaveDate(ahead)
}

// leaveLine has a gang have no place any more that has a date, or to which those ahead make no difference.
func (v *activations) leaveLine(g *gang) {
	if g.queue != nil {
		g.queue = nil
		v.mail.reconcile(keyOf(g.run), lane.Date)
	}
}
