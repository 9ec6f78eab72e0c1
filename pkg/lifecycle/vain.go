package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// setHeldInVain counts the attempts in which places were held in vain for pods that others were to make, each once, and
// says until when none are held again (R46). A Run that has run for hours in between has that many halvings of it.
func setHeldInVain(next *rqv1.RunStatus, s *situation) {
	f := s.facts
	if at, ran := f.Run.StartedAt(); ran && s.phase != rqv1.RunRunning && next.HeldInVain != nil {
		next.HeldInVain.Count >>= min(f.Now.Sub(at)/time.Hour, rqv1.MostInVain)
		if next.HeldInVain.Count == 0 {
			next.HeldInVain = nil
		}
	}
	if since := heldInVainSince(s); !since.IsZero() {
		until := restsUntil(s)
		next.HeldInVain = &rqv1.RunHeldInVain{Count: timesInVain(f.Run) + 1, Since: wholeTime(since),
			Until: wholeTime(until)}
		next.HeldInVain.Count = min(next.HeldInVain.Count, rqv1.MostInVain)
	}
}

// timesInVain returns how many attempts have been counted.
func timesInVain(run *rqv1.Run) int32 {
	if h := run.Status.HeldInVain; h != nil {
		return h.Count
	}
	return 0
}

// restsUntil returns until when a Run rests whose attempt ends in vain now.
func restsUntil(s *situation) time.Time {
	times := min(timesInVain(s.facts.Run)+1, rqv1.MostInVain)
	return s.facts.Now.Add(s.facts.GangDeadline << times)
}

// heldInVainSince returns since when places have been held in an attempt that ends without the pods that they were held
// for, and has not been counted; zero where there is none. It has lasted for its deadline, or its pods have gone after
// a time as long: who makes the first pod again and again is not to hold the others' places for ever.
func heldInVainSince(s *situation) time.Time {
	f := s.facts
	if !f.theirs() || !f.Run.Spec.TheirsComeLate() || s.phase != rqv1.RunPending || saysRunning(f.Run) || s.suspends() ||
		s.edited || s.cuts.final != nil || !slices.Contains(s.roster.core(), nil) {
		return time.Time{}
	}
	since := time.Time{}
	if s.overdue() {
		since = s.starting
	}
	for _, l := range f.Leases {
		pod, start := f.podOf[l.PodUID()], l.Spec.Start.Time
		if l.Status.Closed || l.Spec.Attempt != f.Run.Status.Attempt || active(pod) || cutOrSucceeded(s, pod) ||
			!f.Stands(l.Node()) ||
			f.Now.Sub(start) <= f.GangDeadline {
			continue
		}
		if since.IsZero() || start.Before(since) {
			since = start
		}
	}
	if h := f.Run.Status.HeldInVain; h != nil && !wholeTime(since).After(h.Since.Time) {
		return time.Time{} // that has been counted
	}
	return since
}

// cutOrSucceeded reports whether a pod has gone for another reason than that others did not come.
func cutOrSucceeded(s *situation, pod *corev1.Pod) bool {
	return pod != nil && (s.cuts.doom(pod) || pod.Status.Phase == corev1.PodSucceeded)
}

// untilRested says how long a Run rests whose attempt ends in vain.
func untilRested(s *situation) string {
	until := restsUntil(s)
	if h := s.facts.Run.Status.HeldInVain; h.Rests(s.facts.Now) {
		until = h.Until.Time
	}
	return fmt.Sprintf(", and holds no places again before %s", until.UTC().Format(time.RFC3339))
}
