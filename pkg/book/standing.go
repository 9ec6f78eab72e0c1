package book

import (
	"time"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// queueUp has a gang that was refused be forecast soon, or has it stand in line. One that never fits gets no date.
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
	v.waiting.soonAgain(g)
	at, all := v.waiting.inLine(g)
	switch {
	case !g.inLine():
		v.note(g, now)
		if g.promise != nil || g.pledged != nil {
			v.agenda.setPromise(g, nil)
		}
		v.leaveLine(g)
	case g.mayHaveDate(at):
		v.agenda.signalDue()
	default:
		v.standBack(g, at, all, now)
	}
}

// tellPlaces tells those their places who are too far back to be forecast, of many a part at a time.
func (v *activations) tellPlaces(now time.Time) {
	v.mu.Lock()
	w := v.waiting
	if !w.telling(now) {
		v.mu.unlockUnchanged()
		return
	}
	var moved []*gang
	for _, g := range w.nextPlaces() {
		at, _ := w.inLine(g)
		switch {
		case !g.filed.inLine || !v.agenda.worksOut(g) || g.mayHaveDate(at) || !g.misplaced(at):
		case g.queue != nil && g.queue.far && now.Before(after(g.queue.At, placeRest, now)):
			w.later.by(g.queue.At.Add(placeRest))
		default:
			moved = append(moved, g)
		}
	}
	if len(moved) == 0 {
		v.mu.unlockUnchanged()
		return
	}
	defer v.mu.Unlock()
	for _, g := range moved {
		at, all := w.inLine(g)
		v.standBack(g, at, all, now)
	}
}

// telling reports whether somebody may have another place than was told, and is to be told now.
func (w *waitlist) telling(now time.Time) bool {
	return w.told != w.moved || w.teller > 0 || !w.later.at.IsZero() && !now.Before(w.later.at)
}

// nextPlaces returns those whose places are to be looked at next.
func (w *waitlist) nextPlaces() []*gang {
	if w.teller == 0 {
		w.told, w.later = w.moved, earliest{} // once all have been looked at
	}
	from := min(w.teller, len(w.gangs))
	end := min(from+placesAtOnce, len(w.gangs))
	w.looks += int64(end - from)
	w.teller = end
	if end == len(w.gangs) {
		w.teller = 0
	}
	return w.gangs[from:end]
}

// placesAtOnce is how many places in line are looked at in one go, and placeRest how long the one that a Run was told
// stands at least: where the line moves fast, thousands would be told anew all the time.
const (
	placesAtOnce = 256
	placeRest    = 30 * time.Second
)

// standBack has a gang that is too far back have a place in line, and no date.
func (v *activations) standBack(g *gang, at standing, all int, now time.Time) {
	v.note(g, now)
	v.waiting.dates(g)
	if g.promised() != nil {
		v.agenda.setPromise(g, nil)
	}
	v.standInLine(g, at, all, false, now)
}

// standInLine tells the place of a gang that waits without a date: it is too far back to be forecast, or has been, and
// none may have been found.
func (v *activations) standInLine(g *gang, at standing, all int, none bool, now time.Time) {
	if g.queue == nil || g.queue.past(at.ahead) || g.queue.None != none {
		g.queue = &QueuePlace{Ahead: at.ahead, Of: all, At: now, None: none}
		v.mail.reconcile(keyOf(g.run), lane.Date)
	}
	g.queue.far = !g.mayHaveDate(at)
}

// leaveLine has a gang have no place any more that has a date, or to which those ahead make no difference.
func (v *activations) leaveLine(g *gang) {
	if g.queue != nil {
		g.queue = nil
		v.mail.reconcile(keyOf(g.run), lane.Date)
	}
}
