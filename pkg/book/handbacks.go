package book

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// handbacks are Leases that have been closed and count as open for a moment longer, since others of their Runs are
// about to be closed. What one Run gives back counts as one: those who are small enough for its first part would have
// that before the rest is known, and an older Run that needs all of it be passed by.
type handbacks struct {
	roster *roster
	seats  *seating
	takeIn func(*rqv1.Lease)
	runs   []*handback
	// touched are the Runs of which Leases have been closed since it was looked at what nothing more comes of.
	touched map[types.UID]bool
}

// handback is what one Run gives back.
type handback struct {
	run    types.UID
	leases map[types.NamespacedName]*rqv1.Lease
	// completed says that one of them was of a rank that has completed its work.
	completed bool
	// sweeps is how many have seen it, and came says that others have been closed since the last.
	sweeps int
	came   bool
}

// mostSweeps is after how many sweeps it is taken in though Leases of the Run go on being closed.
const mostSweeps = 10

// defers reports whether a Lease that has been closed counts as open for a moment longer. What is lost, or kept for
// somebody already, does not: it is nobody else's.
func (h *handbacks) defers(l *rqv1.Lease, name types.NamespacedName) bool {
	open, run := h.seats.leases[name], l.Spec.RunRef.UID
	if !h.roster.open || open == nil || l.Spec.Slice.Role == rqv1.RoleBorrowed || !givesBack(l) {
		return false
	}
	if g := h.roster.gangs[run]; g != nil && g.keepsRoom() {
		return false
	}
	if held := h.seats.held[open.pod]; held != nil && (held.vacant || len(held.awaitedBy) > 0) {
		return false
	}
	at := slices.IndexFunc(h.runs, func(b *handback) bool { return b.run == run })
	if at < 0 {
		at = len(h.runs)
		h.runs = append(h.runs, &handback{run: run, leases: map[types.NamespacedName]*rqv1.Lease{}})
	}
	b := h.runs[at]
	b.leases[name], b.came, h.touched[run] = l, true, true
	b.completed = b.completed || l.Status.ClosureReason == rqv1.ClosedCompleted
	return true
}

// givesBack reports whether a Lease was closed because its Run does without what it held.
func givesBack(l *rqv1.Lease) bool {
	switch l.Status.ClosureReason {
	case rqv1.ClosedNodeFailure, rqv1.ClosedEvicted, rqv1.ClosedMaintenance, rqv1.ClosedSwap, rqv1.ClosedUnwound:
		return false
	}
	return true
}

// more reports whether other Leases of a Run are about to be closed.
func (h *handbacks) more(b *handback) bool {
	completes := h.completes(b)
	return h.others(b, func(l *lease) bool { return completes || h.seats.closes(l) })
}

// others reports whether something is so of one of the open Leases of a Run beside those that are closed.
func (h *handbacks) others(b *handback, is func(*lease) bool) bool {
	for name, l := range h.seats.ofRun[b.run] {
		if b.leases[name] == nil && is(l) {
			return true
		}
	}
	return false
}

// completes reports whether a rank of a Run has completed its work, so that the others are about to, unless they were
// waited for in vain before.
func (h *handbacks) completes(b *handback) bool {
	g := h.roster.gangs[b.run]
	return b.completed && g != nil && !g.endsApart
}

// closes reports whether an open Lease is about to be closed: its pod has ended or is about to, or its Run is over.
func (s *seating) closes(l *lease) bool {
	m := s.roster.members[l.pod]
	if m == nil || m.stage == finished || m.leaving || m.doomed() || m.surplus() {
		return true
	}
	g := m.gang
	return g.run == nil || g.over() || g.run.DeletionTimestamp != nil
}

// look takes in what Runs have given back of which nothing more comes. It changes as Leases are closed, and what else
// has nothing more come the next sweep finds.
func (h *handbacks) look() {
	if len(h.touched) == 0 {
		return
	}
	touched := h.touched
	h.touched = map[types.UID]bool{}
	h.takeIf(func(b *handback) bool { return touched[b.run] && !h.more(b) })
}

// takeOf takes in what the Run of a Lease has given back.
func (h *handbacks) takeOf(name types.NamespacedName) {
	of := types.UID("")
	if open := h.seats.leases[name]; open != nil {
		of = types.UID(open.charge.Run)
	}
	h.takeIf(func(b *handback) bool { return b.run == of || b.leases[name] != nil })
}

// takeFrom takes in what has been given back in a namespace.
func (h *handbacks) takeFrom(namespace string) {
	h.takeIf(func(b *handback) bool {
		for name := range b.leases {
			return name.Namespace == namespace // as all of its Run
		}
		return false
	})
}

// sweep has nothing be waited for longer than from one sweep to the next: pods take their time, and the API server may
// not take that a Lease is closed. As long as Leases come in that are being closed, the rest is waited for some more.
func (h *handbacks) sweep() {
	h.takeIf(func(b *handback) bool {
		closing, came := h.others(b, h.seats.closes), b.came
		b.sweeps++
		b.came = false
		if b.sweeps == 1 || closing && came && b.sweeps < mostSweeps {
			return !h.more(b)
		}
		if g := h.roster.gangs[b.run]; g != nil && !closing {
			g.endsApart = true // they were waited for since one had completed, and for nothing else
		}
		return true
	})
}

// takeIf takes in what some Runs have given back.
func (h *handbacks) takeIf(is func(*handback) bool) {
	h.runs = slices.DeleteFunc(h.runs, func(b *handback) bool {
		if !is(b) {
			return false
		}
		byName := func(x, y types.NamespacedName) int { return strings.Compare(x.String(), y.String()) }
		for _, name := range slices.SortedFunc(maps.Keys(b.leases), byName) {
			h.takeIn(b.leases[name])
		}
		return true
	})
}

// has reports whether a Lease is among them.
func (h *handbacks) has(name types.NamespacedName) bool {
	return slices.ContainsFunc(h.runs, func(b *handback) bool { return b.leases[name] != nil })
}
