package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// NextDue returns when the next gang that waits is due; false if none is.
func (b *Book) NextDue() (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	var next earliest
	b.agenda.nextDate(&next)
	b.savers.next(&next)
	b.turns.nextRested(&next)
	return next.at, !next.at.IsZero()
}

// Due wakes the gangs whose date has come, and those that have rested.
func (b *Book) Due(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agenda.wakeDue(now)
	b.turns.rested(now)
}

// Turn works out when the gang of a refused pod starts, and decides when that is now.
func (b *Book) Turn(pod types.UID, now time.Time) {
	b.Refused(pod, now)
	b.mu.Lock()
	run := types.UID("")
	if m := b.roster.members[pod]; m != nil && m.gang.run != nil {
		run = m.gang.run.UID
	}
	b.mu.unlockUnchanged()
	b.WorkOut(run, now)
}

// RefreshPromises works a promise out again that may have changed, as a sweep does it: one at a time.
func (b *Book) RefreshPromises(now time.Time) {
	b.Sweep(now)
	for _, run := range b.turns.stale(now, 1) {
		b.turns.refresh(run, now)
	}
	if run, ok := b.trials.unforeseen(now); ok {
		b.trials.foresee(run, now)
	}
}

// Sweep does what a sweep does beside.
func (b *Book) Sweep(now time.Time) {
	b.mu.Lock()
	b.turns.goRound(now)
	if b.roster.open {
		b.savers.settle(now)
	}
	b.waiting.remind(now)
	b.mu.Unlock()
	b.turns.tellPlaces(now)
}

// once does something that is due from time to time, as a sweep does it.
func (b *Book) once(do func(time.Time), now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.roster.open {
		do(now)
	}
}

// Lapse ends what is kept for Runs that have not started again in time, and the wait of others for lost ranks.
func (b *Book) Lapse(now time.Time) {
	b.once(b.losses.sweep, now)
	b.once(b.kept.lapse, now)
}

// GrowRuns decides which Runs grow now.
func (b *Book) GrowRuns(now time.Time) { b.once(func(now time.Time) { b.growth.grow(now) }, now) }

// Fill gives shards that wait the GPUs that are idle.
func (b *Book) Fill(now time.Time) { b.once(b.fill.sweep, now) }

// Settle finds out for whom money is kept.
func (b *Book) Settle(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.savers.settle(now)
}

// Keeps returns the Runs for which money is kept that are first in their owners' lines, sorted.
func (b *Book) Keeps() (out []string) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	for _, l := range b.waiting.money {
		if l.first != nil && l.first.keeping != nil {
			out = append(out, l.first.run.Name)
		}
	}
	slices.Sort(out)
	return out
}

// WindowPassed wakes those that wait for somebody to be able to pay, as a window of a budget does.
func (b *Book) WindowPassed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.wakePayers()
}

// NextWindow returns when the next budget window opens or closes; false if none does.
func (u *Budgets) NextWindow(now time.Time) (time.Time, bool) {
	u.mu.Lock()
	defer u.mu.unlockUnchanged()
	return u.accounts.NextWindow(now)
}

// Quiet reports whether nothing has changed since the last sweep.
func (b *Book) Quiet() bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.mu.edits == b.mu.swept
}
