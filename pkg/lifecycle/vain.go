package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// setHeldInVain counts how often places were held in vain for pods that others were to make, or that were to start
// again, each time once, and says until when none are held again (R46). A start that was in vain is followed by a rest
// the first time; what is kept for ranks, or for a Run, that were lost from the second time on.
func setHeldInVain(next *rqv1.RunStatus, s *situation) {
	if next.HeldInVain == nil {
		next.HeldInVain = s.facts.Inherits.Left(s.facts.Now)
	}
	if started, ran := s.facts.Run.StartedAt(); ran && s.phase != rqv1.RunRunning {
		halve(next, latest(started, untilOf(next)), s.facts.Now)
	}
	if since := heldInVainSince(s); !since.IsZero() {
		countInVain(next, s, since, 1)
	} else if since := keptInVainSince(s); !since.IsZero() {
		if started, ran := s.facts.Run.StartedAt(); ran && s.phase == rqv1.RunRunning {
			halve(next, latest(started, untilOf(next)), since)
		}
		countInVain(next, s, since, 2)
	}
}

// halve halves the count for each hour of an interval in which the Run ran.
func halve(next *rqv1.RunStatus, from, to time.Time) {
	next.HeldInVain = next.HeldInVain.Halved(to.Sub(from))
}

// untilOf returns until when the last rest lasts; zero where there was none.
func untilOf(status *rqv1.RunStatus) time.Time {
	if status.HeldInVain == nil {
		return time.Time{}
	}
	return status.HeldInVain.Until.Time
}

// countInVain counts what was held in vain since an instant. A rest follows if it was so often at least.
func countInVain(next *rqv1.RunStatus, s *situation, since time.Time, least int32) {
	h := &rqv1.RunHeldInVain{Count: 1, Since: wholeTime(since), Until: wholeTime(s.facts.Now)}
	if was := next.HeldInVain; was != nil {
		h.Count = min(was.Count+1, rqv1.MostInVain)
	}
	if h.Count >= least {
		h.Until = wholeTime(restOf(s.facts, h.Count))
	}
	next.HeldInVain = h
}

// keptInVainSince returns since when what a Run, or ranks of it, had lost was kept for them until they had not come in
// time, if that has not been counted; zero otherwise.
func keptInVainSince(s *situation) (since time.Time) {
	f := s.facts
	kept := meta.FindStatusCondition(f.Run.Status.Conditions, rqv1.ConditionRoomKept)
	switch {
	case s.phase == rqv1.RunRunning && saysRunning(f.Run):
		since = f.KeptInVain
	case s.phase == rqv1.RunPending && !s.suspends() && f.RoomLapsed && kept != nil && kept.Status == metav1.ConditionTrue:
		since = kept.LastTransitionTime.Time
	}
	return uncounted(f.Run, since)
}

// uncounted returns an instant if it is after what was counted last; zero otherwise.
func uncounted(run *rqv1.Run, since time.Time) time.Time {
	if h := run.Status.HeldInVain; since.IsZero() || h != nil && !wholeTime(since).After(h.Since.Time) {
		return time.Time{}
	}
	return since
}

// restOf returns until when a Run rests of which so many attempts have been in vain, the last until now.
func restOf(f *facts, times int32) time.Time { return f.Now.Add(f.GangDeadline << times) }

// heldInVainSince returns since when places have been held in an attempt that ends without the pods that they were held
// for, and has not been counted; zero where there is none. It has lasted for its deadline, or its pods have gone
// before, but not at once: who makes the first pod again and again is not to hold the others' places for ever.
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
		pod, start := f.podOf[l.PodUID()], l.HeldSince()
		if l.Status.Closed || l.Spec.Attempt != f.Run.Status.Attempt || active(pod) || cutOrSucceeded(s, pod) ||
			!f.Stands(l.Node()) || f.Now.Sub(start) <= rqv1.HeldUnpaid {
			continue
		}
		if since.IsZero() || start.Before(since) {
			since = start
		}
	}
	return uncounted(f.Run, since)
}

// cutOrSucceeded reports whether a pod has gone for another reason than that others did not come.
func cutOrSucceeded(s *situation, pod *corev1.Pod) bool {
	return pod != nil && (s.cuts.doom(pod) || pod.Status.Phase == corev1.PodSucceeded)
}

// untilRested says how long a Run rests whose attempt ends in vain.
func untilRested(s *situation) string {
	until := restOf(s.facts, 1)
	switch h := s.facts.Run.Status.HeldInVain; {
	case h.Rests(s.facts.Now):
		until = h.Until.Time
	case h != nil:
		until = restOf(s.facts, min(h.Count+1, rqv1.MostInVain))
	}
	return fmt.Sprintf(", and holds no places again before %s", until.UTC().Format(time.RFC3339))
}
