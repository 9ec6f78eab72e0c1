package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Decide returns what a Run needs next.
func Decide(o Observed) Decision {
	f := factsOf(o)
	if !f.stays() { // Leases close as the pods go
		deleted, released := f.leaveTheirs(removalsOf(f, nil), true)
		d := Decision{Delete: deleted, Release: released, Status: farewell(f), After: f.untilEnded()}
		d.Close, d.Outlived = closings(f, f.reasonWithoutRun)
		return d
	}
	s := situationOf(f)
	deleted, released := f.leaveTheirs(removalsOf(f, deletionsOf(s)), false)
	d := Decision{Delete: deleted, Release: released, Status: statusOf(s),
		requeues: s.requeued() && s.cuts.final == nil || s.suspends() && saysRunning(f.Run) ||
			!heldInVainSince(s).IsZero()}
	d.Close, d.Outlived = closings(f, s.reasonGone)
	d.tellsShards = tellsOfShards(f.Run, d.Status)
	d.tellsOfGone = d.Status != nil && !f.full() && len(s.untoldOfGone()) > 0
	_, suspended := f.Run.SuspendedSince()
	d.resumes = d.Status != nil && suspended &&
		!meta.IsStatusConditionTrue(d.Status.Conditions, rqv1.ConditionSuspended)
	d.Evictable = s.guard.lowered
	if s.guard.stale {
		d.Guard = s.guard.wanted
	}
	d.Unguard = s.guard.unwanted
	d.Expire = d.Status == nil && expires(f) // the event of a status looks again
	d.After = Soonest(untilDue(s), f.untilEnded())
	if s.goesOn() {
		d.Close = f.doubted(d.Close)
		d.Replace, d.Create = absent(s)
		if f.theirs() {
			var freed []*corev1.Pod
			d.Adopt, freed = adoptions(s)
			d.Release = append(d.Release, freed...)
		}
		if lookedUp(f, d.Create) {
			d.Service = service(f.Run)
		}
		d.Retry = untilRetry(f)
		var later time.Duration
		d.Words, later = wordsFor(s)
		d.After = Soonest(d.After, later)
	}
	return d
}

// expires reports whether the time of a Run that has ended is over (R39), and nothing is left for it to tell: all its
// Leases are closed and its pods have ended, as the caches have it, and the book, which knows of writes under way. One
// that only asks what would happen has none.
func expires(f *facts) bool {
	at, goes := f.Run.ExpiresAt(f.FinishedRunTTL)
	return goes && !f.Now.Before(at) && (f.AtRest || f.Run.WhatIf()) &&
		!slices.ContainsFunc(f.Pods, f.heldBy) &&
		!slices.ContainsFunc(f.Leases, func(l *rqv1.Lease) bool { return l.Spec.RunRef.UID == f.Run.UID })
}

// lookedUp reports whether pods are the first of their Run that others look up, so that it may have no Service yet. A
// Run that began alone may go on in more pods, if only smaller nodes are left.
func lookedUp(f *facts, pods []*corev1.Pod) bool {
	named := func(pod *corev1.Pod) bool { return pod.Spec.Subdomain != "" }
	return slices.ContainsFunc(pods, named) && !slices.ContainsFunc(f.Pods, func(pod *corev1.Pod) bool {
		run, ok := f.runOf(pod)
		return ok && run == f.Run.UID && named(pod)
	})
}

// Withdrawn returns the deletions of all pods of a Run.
func Withdrawn(o Observed) []Deletion {
	f := factsOf(o)
	s := situationOf(f)
	return removalsOf(f, endedBy(s, s.roster.all(), present))
}

// untilDue returns when something is due although nothing happens: a gang that has begun to start or a cohort passes
// its deadline, the Run's maxDuration is over, or its ranks should be ready or are and its status is to say so. That
// nothing can be said of a Run puts nothing off. It returns 0 when nothing is due.
func untilDue(s *situation) time.Duration {
	if s.hasEnded() {
		return untilOverdue(s)
	}
	f := s.facts
	due := Soonest(s.guard.after, untilMoved(f), f.Unsaid.Sub(f.Now))
	if !s.keeps() {
		return due
	}
	if !s.starting.IsZero() {
		due = Soonest(due, s.startsBy().Sub(f.Now)+time.Second)
	}
	if at := s.toldUnmade(); s.unmade() > 0 && !at.Before(f.Now) {
		due = Soonest(due, at.Sub(f.Now)+time.Second)
	}
	if since, begun := growingSince(&s.roster); begun {
		due = Soonest(due, since.Add(f.GangDeadline).Sub(f.Now)+time.Second)
	}
	if !f.NotTaken.IsZero() {
		due = Soonest(due, f.NotTaken.Add(f.GangDeadline).Sub(f.Now))
	}
	if end, limited := f.Run.EndsAt(); limited {
		due = Soonest(due, end.Sub(f.Now))
	}
	if at := s.restarts.due(s); !at.IsZero() && s.goesOn() {
		due = Soonest(due, max(at.Sub(f.Now), time.Millisecond))
	}
	return Soonest(due, nextLate(s).Sub(f.Now), s.ready.due.Sub(f.Now))
}

// Soonest returns the least of some times from now, without those that are over; 0 if none is left.
func Soonest(of ...time.Duration) time.Duration {
	least := time.Duration(0)
	for _, after := range of {
		if after > 0 && (least == 0 || after < least) {
			least = after
		}
	}
	return least
}

// untilRetry returns when a refusal is worth another try that may pass without an event.
func untilRetry(f *facts) time.Duration {
	if f.Refusal != nil && f.Refusal.Passes() {
		if r := f.Refusal.Rejected; r != nil {
			return max(retryRejected, r.Rest)
		}
		return retryRejected
	}
	return 0
}
