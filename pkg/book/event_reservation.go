package book

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// SetReservation adds or replaces a Reservation.
func (b *Book) SetReservation(r *rqv1.Reservation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.agenda.reservations.older(r) {
		return
	}
	b.agenda.reservations.set(r)
	if at := r.Status.ActivatedAt; at != nil {
		b.agenda.stamped(at.Time)
	}
	b.turns.resumePlans(b.cuts.setCuts(keyOf(r), cutsIn(r)))
	g := b.roster.gangs[runOf(r)]
	switch {
	case g == nil:
	case r.Ended():
		b.turns.dismiss(g, r)
		b.roster.settle(g)
	default:
		b.turns.reserve(g, r)
		b.roster.settle(g)
	}
}

// DeleteReservation forgets a Reservation, which somebody deleted or which is old.
func (b *Book) DeleteReservation(r *rqv1.Reservation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agenda.reservations.bury(r)
	b.turns.resumePlans(b.cuts.setCuts(keyOf(r), nil))
	if g := b.roster.gangs[runOf(r)]; g != nil {
		b.turns.dismiss(g, r)
		b.roster.settle(g)
	}
}

// SetLotteryKey gives the book the key that nonces are made of.
func (b *Book) SetLotteryKey(key []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agenda.key = key
	for _, g := range b.waiting.gangs {
		b.mail.reconcile(keyOf(g.run), lane.Date) // its Reservation can commit now
		if g.activating() {
			b.waiting.again(g)
		}
	}
	b.agenda.signalDue()
}

// SetBrake says how the brakes on cuts stand, and returns what was said before. What has been decided goes on, unless
// it is called off.
func (b *Book) SetBrake(s brake.State) (was string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was = b.agenda.brake.Says()
	b.agenda.brake = s
	for g := range b.roster.living {
		if g.run == nil {
			continue
		}
		off := false
		if g.reservation != nil {
			_, off = s.Off(keyOf(g.reservation), g.reservation.UID)
		}
		if off || g.promise != nil && g.promise.Cuts {
			work := lane.Date
			if off {
				work = lane.Cut // those who were to go may stay
			}
			b.mail.reconcile(keyOf(g.run), work)
		}
	}
	b.agenda.signalDue()
	return was
}

// CutsWithinHour returns how many Runs activations have ended or shrunk within the last hour.
func (b *Book) CutsWithinHour(now time.Time) int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return len(b.agenda.cutsWithin(now))
}
