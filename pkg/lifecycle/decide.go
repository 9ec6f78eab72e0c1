package lifecycle

import (
	"time"
)

// Decide returns what a Run needs next.
func Decide(o Observed) Decision {
	f := factsOf(o)
	if !f.stays() { // Leases close as the pods go
		return Decision{Close: closings(f, f.reasonWithoutRun), Delete: removalsOf(f, nil), Status: farewell(f)}
	}
	s := situationOf(f)
	d := Decision{Close: closings(f, s.reasonGone), Delete: removalsOf(f, deletionsOf(s)), Status: statusOf(s),
		requeues: s.requeued() && s.cuts.final == nil}
	if s.goesOn() {
		d.Close = doubted(d.Close)
		d.Replace, d.Create = absent(s)
		if len(d.Create) > 0 && !saysRunning(f.Run) { // one that runs has had it since it started
			d.Service = service(f.Run)
		}
		d.After, d.Retry = untilDue(s), untilRetry(f)
	} else if f.Now.Before(f.Unsaid) {
		d.After = f.Unsaid.Sub(f.Now)
	}
	return d
}

// Withdrawn returns the deletions of all pods of a Run.
func Withdrawn(o Observed) []Deletion {
	f := factsOf(o)
	s := situationOf(f)
	return removalsOf(f, endedBy(s, s.roster.all(), present))
}

// untilDue returns when something is due although nothing happens: a gang that has begun to start or a cohort passes
// its deadline, or the Run's maxDuration is over. It returns 0 when nothing is.
func untilDue(s *situation) time.Duration {
	due := time.Duration(0)
	sooner := func(left time.Duration) {
		if due == 0 || left < due {
			due = left
		}
	}
	f := s.facts
	if !s.starting.IsZero() {
		sooner(s.starting.Add(f.GangDeadline).Sub(f.Now) + time.Second)
	}
	if since, begun := growingSince(&s.roster); begun {
		sooner(since.Add(f.GangDeadline).Sub(f.Now) + time.Second)
	}
	if end, limited := f.Run.EndsAt(); limited {
		sooner(end.Sub(f.Now))
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
