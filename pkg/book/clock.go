package book

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// Refused has it be worked out soon when the gang of a refused pod starts. When its date has come that is done at once,
// and it is decided who is cut for it: this is called in the scheduling cycle of the pod, in which other rules can be
// asked.
func (b *Book) Refused(pod types.UID, now time.Time) {
	if s := b.turns.refused(pod, now); s != nil {
		s.workOut()
		b.turns.end(s, now)
	}
}

// WorkOut works out again when a Run starts that waits, if that may have changed.
func (b *Book) WorkOut(run types.UID, now time.Time) { b.turns.refresh(run, now) }

// Changed is signalled when what Next says may have come to be earlier. Of changes after the first since the last
// sweep, the next sweep finds out: that is at most a second later.
func (b *Book) Changed() <-chan struct{} { return b.agenda.dues }

// Next returns the earliest instant at which Advance would do anything if no event comes before; false if it never
// would.
func (b *Book) Next(now time.Time) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if !b.roster.open {
		return time.Time{}, false
	}
	var next, sweep, promise earliest
	b.agenda.nextDate(&next)
	if window, ok := b.accounts.NextWindow(earlier(b.pace.windows, now)); ok {
		next.by(window)
	}
	b.nodes.nextReturn(&next, earlier(b.pace.windows, now))
	b.drainer.nextLeave(&next, earlier(b.pace.windows, now))
	if b.nextSweep(&sweep, now); !sweep.at.IsZero() {
		next.by(latest(sweep.at, after(b.pace.swept, sweepPeriod, now)))
	}
	b.agenda.nextOutdated(&promise, now)
	if b.trials.nextOutlook(&promise, now); !promise.at.IsZero() {
		next.by(latest(promise.at, b.pace.nextPromise(now)))
	}
	return next.at, !next.at.IsZero()
}

// nextSweep tells when a sweep might find something to do.
func (b *Book) nextSweep(e *earliest, now time.Time) {
	if b.mu.edits != b.mu.swept {
		e.by(now)
	}
	b.waiting.nextCall(e, now)
	b.waiting.nextPledge(e)
	b.losses.next(e)
	if len(b.handbacks.runs) > 0 {
		e.by(now)
	}
	b.savers.next(e)
	b.kept.nextLapse(e, now)
	b.turns.nextRound(e, now)
	b.turns.nextDenied(e, now)
	b.turns.nextRested(e)
	b.starts.nextAwaited(e)
	b.gone.next(e, now)
	b.nextUnanswered(e, now)
	b.growth.nextTry(e, b.pace.swept)
	b.fill.nextForgiveness(e)
}

// Advance has everything happen whose time has come: dates, windows of budgets, what was kept too long, growth, and the
// use of idle GPUs.
func (b *Book) Advance(now time.Time) {
	b.dates(now)
	b.sweep(now)
}

// WorkOutNext works out one promise again that may have changed, or when a suspended Run would start, each fourth time
// before promises. It reports whether there was one. The book goes on
// meanwhile. last is how long the one before took, if that has not been told yet: it is a few times as long until the
// next, since that takes a processor away from everything else.
func (b *Book) WorkOutNext(now time.Time, last time.Duration) bool {
	if !b.mayRefresh(now, last) {
		return false
	}
	b.turns.tellPlaces(now)
	b.trials.turn++
	suspended, unforeseen := b.trials.unforeseen(now)
	if stale := b.turns.stale(now, 1); len(stale) > 0 && !(unforeseen && b.trials.turn%4 == 0) {
		b.turns.refresh(stale[0], now)
		b.sizeUp(stale[0], now)
		return true
	}
	if unforeseen {
		b.trials.foresee(suspended, now)
	}
	return unforeseen
}

// sizeUp has a Run looked at whose pods may be of a size that nobody pays for any more, since GPU-hours have been
// spent.
func (b *Book) sizeUp(run types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g != nil && g.run != nil && b.shapes.wearsOff(g, now) {
		b.mail.reconcile(keyOf(g.run), lane.Date)
	}
}

// mayRefresh reports whether a promise may be worked out again, and notes that one is.
func (b *Book) mayRefresh(now time.Time, last time.Duration) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if last > 0 {
		b.pace.took = last
	}
	if now.Before(b.pace.nextPromise(now)) {
		return false
	}
	b.pace.refreshed = now
	return true
}

// dates wakes those whose date or window has come, or for whom nodes have come back.
func (b *Book) dates(now time.Time) {
	b.mu.Lock()
	var next earliest
	b.agenda.nextDate(&next)
	seen := earlier(b.pace.windows, now)
	window, opens := b.accounts.NextWindow(seen)
	opens = opens && !window.After(now)
	back, left := b.nodes.returned(seen, now), b.drainer.left(seen, now)
	if !b.roster.open || !opens && len(back)+len(left) == 0 && (next.at.IsZero() || next.at.After(now)) {
		b.mu.unlockUnchanged()
		return
	}
	defer b.mu.Unlock()
	b.agenda.wakeDue(now)
	b.pace.windows, b.shapes.now = now, now
	if opens {
		for _, name := range b.accounts.Edged(seen, now) {
			b.waiting.wakeEdited(name)
		}
	}
	for name := range back {
		b.waiting.wakeNodes(b.nodes.nodeFlavor(name))
	}
	maps.Copy(back, left)
	if len(back) > 0 {
		b.places.reconcileOn(back)
	}
}

// sweep looks for what is worth looking for since the last one.
func (b *Book) sweep(now time.Time) {
	b.mu.Lock()
	var due earliest
	if b.roster.open && !now.Before(after(b.pace.swept, sweepPeriod, now)) {
		b.nextSweep(&due, now)
	}
	if due.at.IsZero() || due.at.After(now) {
		b.mu.unlockUnchanged()
		return
	}
	b.pace.swept = now
	b.losses.sweep(now)
	b.handbacks.sweep()
	b.waiting.wakeStirred() // before those who would grow by it, or fill it
	b.savers.settle(now)
	b.waiting.callAgain(now)
	b.kept.lapse(now)
	b.turns.rested(now)
	b.starts.awaited(now)
	b.gone.settle(now)
	b.unanswered(now)
	b.turns.goRound(now)
	b.waiting.remind(now)
	grown := b.growth.grow(now)
	b.fill.sweep(now)
	if grown {
		b.mu.unlockSwept()
	} else {
		b.mu.Unlock()
	}
}
