package lifecycle

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// situation is how a Run stands that is there.
type situation struct {
	footing
	phase rqv1.RunPhase
	// starting is when the pods that are starting opened their first Lease; zero when none of them has.
	starting time.Time
	// ready is how many ranks are ready while the Run runs.
	ready readiness
	// guard is how the Run's ranks are guarded against evictions, and moves says that ranks may leave their nodes now.
	guard guard
	moves bool
}

func situationOf(f *facts) *situation {
	s := &situation{footing: footingOf(f)}
	s.phase = phaseOf(&s.footing)
	s.startsWithout()
	s.starting = startingSince(s)
	if s.phase == rqv1.RunRunning {
		s.ready = readinessOf(f, s.roster.ranks)
	}
	s.guard = guardOf(s)
	s.moves = mayMove(s)
	return s
}

// narrowed reports whether the Run runs and its status says how wide it may be: only then do pods beyond that go.
func (s *situation) narrowed() bool {
	return s.phase == rqv1.RunRunning && s.width.recorded(s.facts.Run)
}

// requeued reports whether the Run gives up what it holds and waits for its turn again.
func (s *situation) requeued() bool {
	return saysRunning(s.facts.Run) && s.phase == rqv1.RunPending && !s.facts.opportunistic() && !s.suspends()
}

// overdue reports whether a gang that has not started has held GPUs for longer than its deadline (I9).
func (s *situation) overdue() bool {
	return s.phase == rqv1.RunPending && !s.facts.opportunistic() && !s.suspends() && !s.starting.IsZero() &&
		s.facts.Now.After(s.startsBy())
}

// startsBy returns by when all pods are to be bound that start, of which some have a Lease.
func (s *situation) startsBy() time.Time {
	f := s.facts
	if s.phase != rqv1.RunPending {
		return s.starting.Add(f.GangDeadline)
	}
	return rank.StartsBy(&f.Run.Spec, s.starting, s.roster.ranks, f.GangDeadline, f.Now)
}

// startsAgain reports whether the Run gives up all that it holds, to start again.
func (s *situation) startsAgain() bool {
	return s.requeued() || s.overdue() || s.edited || s.suspends()
}

// hasEnded reports whether the Run has ended.
func (s *situation) hasEnded() bool { return s.phase == rqv1.RunCompleted || s.phase == rqv1.RunFailed }

// keeps reports whether the Run keeps its pods.
func (s *situation) keeps() bool { return !s.hasEnded() && !s.startsAgain() && s.facts.Shape == nil }

// goesOn reports whether the Run keeps its pods and gets the pods that it lacks.
func (s *situation) goesOn() bool { return s.keeps() && !s.mute() }

// mute reports whether what becomes of the Run could not be said: it is too large for its status, or was a short while
// ago.
func (s *situation) mute() bool { return s.facts.tooLarge || s.facts.Now.Before(s.facts.Unsaid) }

// startingSince returns when the pods that are starting opened their first Lease: all pods of a gang that has not
// started, also those beyond the width that it desires by now, and those of a running one that are not bound. It is
// zero when none of them has a Lease.
func startingSince(s *situation) (first time.Time) {
	for _, pod := range s.roster.all() {
		if !active(pod) || s.cuts.doom(pod) || s.phase == rqv1.RunRunning && bound(pod) {
			continue
		}
		lease := s.facts.leaseOf[pod.UID]
		if lease == nil {
			continue
		}
		if start := lease.HeldSince(); first.IsZero() || start.Before(first) {
			first = start
		}
	}
	return first
}
