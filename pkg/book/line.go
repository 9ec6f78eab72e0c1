package book

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// dated is how many of the Runs that wait for a GPU type are forecast, the oldest: a date further back would rest on so
// many others that it would not hold. A Run that has a date keeps it while it is among keptDates.
const (
	dated     = 32
	keptDates = 2 * dated
)

// QueuePlace is where a Run that has no date stands among those that wait for its GPU type.
type QueuePlace struct {
	// Ahead is how many older Runs wait, and Of how many do in all.
	Ahead, Of int
	At        time.Time
	// far says that the Run was not forecast; else it was, and has no date.
	far bool
}

// past reports whether a place is so far from another, in Runs ahead, that people are told: it is written a few times
// only while a Run comes from the end of a long line to its head.
func (p *QueuePlace) past(ahead int) bool {
	return ahead != p.Ahead && (4*ahead <= 3*p.Ahead || 4*ahead >= 5*p.Ahead+4*dated)
}

// eachInLine goes through the gangs that wait, oldest first, with how many are ahead of each in its line.
func (w *waitlist) eachInLine(visit func(g *gang, ahead int)) {
	before := map[string]int{}
	for _, g := range w.gangs {
		visit(g, before[g.full.Flavor])
		if g.waits() {
			before[g.full.Flavor]++
		}
	}
}

// inLine returns how many are ahead of a gang in its line, and how many are in it.
func (w *waitlist) inLine(of *gang) (ahead, all int) {
	w.eachInLine(func(g *gang, before int) {
		if g == of {
			ahead = before
		}
		if g.full.Flavor == of.full.Flavor && g.waits() {
			all++
		}
	})
	return ahead, all
}

// placeOf returns how many would be ahead of a Run that has not been submitted, and how many would be in its line. A
// gang of the same Run is left aside.
func (w *waitlist) placeOf(newcomer *gang) (ahead, all int) {
	for _, g := range w.gangs {
		if g.full.Flavor != newcomer.full.Flavor || !g.waits() && !g.saysThatItWaits() || g.run.UID == newcomer.run.UID {
			continue
		}
		all++
		if byAge(g, newcomer) < 0 {
			ahead++
		}
	}
	return ahead, all + 1
}

// saysThatItWaits reports whether a gang has been refused a start by its Run's status: a book that decides nothing does
// not know it otherwise.
func (g *gang) saysThatItWaits() bool {
	return g.run != nil && !g.opportunistic() && g.run.Status.Phase == rqv1.RunPending && g.run.Status.Refusal != nil &&
		g.run.DeletionTimestamp == nil && g.shape == nil
}

// mayHaveDate reports whether a gang is forecast that has some ahead of it.
func (g *gang) mayHaveDate(ahead int) bool {
	if g.promise != nil || g.reservation != nil || g.keepsRoom() {
		return ahead < keptDates
	}
	return ahead < dated
}

// misplaced reports whether a gang is forecast and is not to be, or the other way round, or has come so far that people
// are told.
func (g *gang) misplaced(ahead int) bool {
	if g.mayHaveDate(ahead) {
		return g.queue != nil && g.queue.far
	}
	return g.queue == nil || !g.queue.far || g.queue.past(ahead)
}

// queueUp has a gang that was refused be forecast soon, or has it stand in line.
func (v *activations) queueUp(g *gang, now time.Time) {
	if g.activation != nil || v.agenda.dateless(g, now) {
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
		if ahead, told := places[g]; told {
			v.standBack(g, ahead, all[g.full.Flavor], now)
		}
	}
}

// standBack has a gang that is too far back have a place in line, and no date.
func (v *activations) standBack(g *gang, ahead, all int, now time.Time) {
	g.looked, g.seen, g.woken = now, v.waiting.epoch, false
	if g.promise != nil {
		v.agenda.setPromise(g, nil)
	}
	v.standInLine(g, ahead, all, now)
}

// standInLine tells the place of a gang that waits without a date: it is too far back to be forecast, or has been.
func (v *activations) standInLine(g *gang, ahead, all int, now time.Time) {
	far := !g.mayHaveDate(ahead)
	if g.queue == nil || g.queue.past(ahead) {
		g.queue = &QueuePlace{Ahead: ahead, Of: all, At: now}
		v.mail.reconcile(keyOf(g.run), lane.Date)
	}
	g.queue.far = far
}

// leaveLine has a gang that has a date have no place any more.
func (v *activations) leaveLine(g *gang) {
	if g.queue != nil {
		g.queue = nil
		v.mail.reconcile(keyOf(g.run), lane.Date)
	}
}
