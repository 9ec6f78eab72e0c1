package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Decide returns what a Run needs next.
func Decide(o Observed) Decision {
	f := factsOf(o)
	if !f.stays() { // Leases close as the pods go
		d := Decision{Close: closings(f, f.reasonWithoutRun), Status: farewell(f)}
		d.Delete, d.Release = leaveTheirs(removalsOf(f, nil), true)
		return d
	}
	s := situationOf(f)
	d := Decision{Close: closings(f, s.reasonGone), Status: statusOf(s),
		requeues: s.requeued() && s.cuts.final == nil || s.suspends() && saysRunning(f.Run)}
	d.Delete, d.Release = leaveTheirs(removalsOf(f, deletionsOf(s)), false)
	d.tellsShards = tellsOfShards(f.Run, d.Status)
	d.Evictable = s.guard.lowered
	if s.guard.stale {
		d.Guard = s.guard.wanted
	}
	d.Unguard = s.guard.unwanted
	d.Expire = d.Status == nil && expires(f) // the event of a status looks again
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
		d.After, d.Retry = untilDue(s), untilRetry(f)
		for _, after := range [...]time.Duration{s.guard.after, untilMoved(f)} {
			if after > 0 && (d.After == 0 || after < d.After) {
				d.After = after
			}
		}
	} else if f.Now.Before(f.Unsaid) {
		d.After = f.Unsaid.Sub(f.Now)
	} else if s.hasEnded() {
		d.After = untilOverdue(s)
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
// its deadline, the Run's maxDuration is over, or its ranks should be
// ready or are and its status is to say so. It returns 0 when nothing is.
func untilDue(s *situation) time.Duration {
	due := time.Duration(0)
	sooner := func(left time.Duration) {
		if due == 0 || left < due {
			due = left
		}
	}
	f := s.facts
	if !s.starting.IsZero() {
		sooner(s.startsBy().Sub(f.Now) + time.Second)
	}
	if at := s.toldUnmade(); s.unmade() > 0 && !at.Before(f.Now) {
		sooner(at.Sub(f.Now) + time.Second)
	}
	if since, begun := growingSince(&s.roster); begun {
		sooner(since.Add(f.GangDeadline).Sub(f.Now) + time.Second)
	}
	if left := f.NotTaken.Add(f.GangDeadline).Sub(f.Now); !f.NotTaken.IsZero() && left > 0 {
		sooner(left)
	}
	if end, limited := f.Run.EndsAt(); limited {
		sooner(end.Sub(f.Now))
	}
	for _, at := range [...]time.Time{nextLate(s), s.ready.due} {
		if at.After(f.Now) {
			sooner(at.Sub(f.Now))
		}
	}
	if at := s.restarts.due(s); !at.IsZero() {
		sooner(max(at.Sub(f.Now), time.Millisecond))
	}
	return due
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
