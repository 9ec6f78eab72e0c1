package book

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// handbacks are the Runs that give back what they hold, a Lease at a time. What one Run gives back counts as one: it is
// taken in before anybody is tried who waits, or those that are small enough for its first part would have it.
type handbacks struct {
	roster  *roster
	seats   *seating
	waiting *waitlist
	of      map[types.UID]handback
	// since is when a sweep has first seen any; zero while none has.
	since time.Time
}

// handback is that of one Run: GPUs of which type, and whether a rank has completed its work.
type handback struct {
	flavor    string
	completes bool
}

// note notes that a Lease is closed, and why.
func (h *handbacks) note(l *lease, why rqv1.ClosureReason) {
	run := types.UID(l.charge.Run)
	h.of[run] = handback{l.charge.Flavor, h.of[run].completes || why == rqv1.ClosedCompleted}
}

// look has those who wait for GPUs of a type be tried, or not yet.
func (h *handbacks) look() {
	if len(h.of)+len(h.roster.takesIn) == 0 {
		return
	}
	was := h.roster.takesIn
	h.roster.takesIn = map[string]bool{}
	for run, b := range h.of {
		if h.more(run, b.completes) {
			h.roster.takesIn[b.flavor] = true
		} else {
			delete(h.of, run)
		}
	}
	for flavor := range was {
		h.waiting.stirred = h.waiting.stirred || !h.roster.takesIn[flavor]
	}
}

// more reports whether more of a Run's Leases are about to be closed: their pods have ended, or the Run is over, or one
// of its ranks has completed its work, as the others are about to.
func (h *handbacks) more(run types.UID, completes bool) bool {
	if len(h.seats.ofRun[run]) == 0 {
		return false
	}
	g := h.roster.gangs[run]
	if g == nil || g.run == nil || g.over() || completes && g.started() && !g.opportunistic() {
		return true
	}
	for _, l := range h.seats.ofRun[run] {
		if m := h.roster.members[l.pod]; m == nil || m.stage == finished {
			return true
		}
	}
	return false
}

// sweep has nobody wait for longer than a sweep and the next: pods may take their time, and closing Leases may fail.
func (h *handbacks) sweep(now time.Time) {
	switch {
	case len(h.of) == 0:
		h.since = time.Time{}
	case h.since.IsZero():
		h.since = now
	case !now.Before(h.since.Add(sweepPeriod)):
		clear(h.of)
		h.since = time.Time{}
	}
}

// next tells when that is to be looked at.
func (h *handbacks) next(e *earliest, now time.Time) {
	switch {
	case len(h.of) == 0:
	case h.since.IsZero():
		e.by(now)
	default:
		e.by(h.since.Add(sweepPeriod))
	}
}
