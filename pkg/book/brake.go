package book

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

// cutWindow is the time over which cuts are counted (R36).
const cutWindow = time.Hour

// restraint is until when a gang's activation is held back, and a sentence that says why.
type restraint struct {
	until time.Time
	why   string
	// limited says that it is for cutsPerHour.
	limited bool
}

// SetBrake says how the brakes on cuts stand, and returns what was said before. What has been decided goes on, unless it is
// called off.
func (b *Book) SetBrake(s brake.State) (was string) {
	b.mu.Lock()
	defer b.unlock()
	was = b.brake.Says()
	b.brake = s
	for _, g := range b.gangs {
		if g.run == nil {
			continue
		}
		off := false
		if g.reservation != nil {
			_, off = s.Off(keyOf(g.reservation), g.reservation.UID)
		}
		if off || g.promise != nil && g.promise.Cuts {
			b.reconcile(keyOf(g.run))
		}
	}
	b.signalDue()
	return was
}

// braked reports whether nobody may be cut for a gang now: cuts are paused, or too many have been made.
func (b *Book) braked(g *gang, now time.Time) bool {
	return b.brake.Says() != "" || now.Before(g.restraint.until)
}

// stand has the date of a gang stand still that has come and may not be acted upon.
func (b *Book) stand(g *gang, p *forecast.Promise, now time.Time) {
	if was := g.reservation.Spec.EarliestStart.Time; was.Before(now) {
		p.At = was
	}
	b.setPromise(g, p)
}

// dateless reports whether a gang gets no date, since its activation was called off a short while ago. Its lead begins anew after
// that.
func (b *Book) dateless(g *gang, now time.Time) bool {
	at, word := b.reservations.calledOff(g.run.UID)
	until := at.Add(b.args.ReservationLead.Duration)
	switch {
	case !at.IsZero() && now.Before(until):
		g.since, g.looked, g.seen, g.woken = until, now, b.waiting.epoch, false
		g.restraint = restraint{until: until, why: fmt.Sprintf("its activation was %s; it gets no new date before %s", word, until.UTC().Format(time.RFC3339))}
		b.setPromise(g, nil)
		return true
	case !now.Before(g.restraint.until):
		g.restraint = restraint{}
	}
	return false
}

// calledOff returns when an activation for a Run was last called off, and by which word; zero when none ever was.
func (r *reservations) calledOff(run types.UID) (at time.Time, word string) {
	for _, reservation := range r.byRun[run] {
		s := &reservation.Status
		if s.CalledOff != "" && s.EndedAt != nil && s.EndedAt.After(at) {
			at, word = s.EndedAt.Time, s.CalledOff
		}
	}
	return at, word
}

// CutsWithinHour returns how many Runs activations have ended or shrunk within the last hour.
func (b *Book) CutsWithinHour(now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.cutsWithin(now))
}

// cutsWithin returns when Runs were cut within the last hour, in order: as Reservations record it, so that a restart changes
// nothing, and as it has been decided and is being published.
func (b *Book) cutsWithin(now time.Time) []time.Time {
	var out []time.Time
	note := func(at time.Time, cuts []rqv1.Cut) {
		if now.Sub(at) < cutWindow {
			for range brake.Runs(cuts) {
				out = append(out, at)
			}
		}
	}
	for _, of := range b.reservations.byRun {
		for _, r := range of {
			if r.Status.ActivatedAt != nil {
				note(r.Status.ActivatedAt.Time, r.Status.Cuts)
			}
		}
	}
	for _, g := range b.gangs {
		if a := g.activation; a != nil && !a.Failed && (g.reservation == nil || len(g.reservation.Status.Cuts) == 0) {
			note(a.At, a.Cuts)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// brakeOn returns a sentence that says why nobody is cut for a gang that waits; empty when that is not so.
func (b *Book) brakeOn(g *gang) string {
	if says := b.brake.Says(); says != "" && g.promise != nil && g.promise.Cuts {
		return says + "; the date stands still once it has come"
	}
	return g.restraint.why
}

// word returns by which word the activation of a gang is called off; nil when it is not.
func (b *Book) word(g *gang) *brake.Word {
	if g.reservation == nil {
		return nil
	}
	if word, off := b.brake.Off(keyOf(g.reservation), g.reservation.UID); off {
		return &word
	}
	return nil
}
