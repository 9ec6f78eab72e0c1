package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// settled returns the width and the pods of a Run whose growth has ended: all of the cohort is bound, or it is given
// up, which leaves the Run as it was (R23). Growth that goes on is left alone.
func settled(f *facts, w width, r roster) (width, roster) {
	switch {
	case w.growing == 0:
		return w, r
	case growingIn(f.Run) == w.growing && !slices.ContainsFunc(r.cohort(), f.awaited):
		w = w.resized(w.growing, 0)
	case stunted(f, &r):
		w = w.resized(w.granted, 0)
	default:
		return w, r
	}
	return w, rosterAt(f, w)
}

// awaited reports whether a pod of a cohort has still to be bound. One that has ended well was.
func (f *facts) awaited(pod *corev1.Pod) bool {
	return pod == nil || !f.runs(pod) && pod.Status.Phase != corev1.PodSucceeded
}

// stunted reports whether the growth under way fails: the cohort does not fit, is not taken by the API server, is not
// bound in time or breaks, or the Run itself has lost a pod, which comes first.
func stunted(f *facts, r *roster) bool {
	since, begun := growingSince(r)
	return f.Refusal != nil && f.Refusal.Grow || f.Problem != "" || begun && f.Now.Sub(since) > f.GangDeadline ||
		slices.ContainsFunc(r.cohort(), func(pod *corev1.Pod) bool {
			return pod != nil && pod.Status.Phase == corev1.PodFailed
		}) ||
		f.lost(r.core())
}

// lost reports whether a rank is wanting. One is not for which nothing is kept, or that is done and has no pod that is
// to be placed.
func (f *facts) lost(ranks []*corev1.Pod) bool {
	for index, pod := range ranks {
		if f.wanting(pod) && !f.gaveUp(index) && (active(pod) || !f.Completed[index]) {
			return true
		}
	}
	return false
}

// wanting reports whether an active pod is gone or going, or its node is.
func (f *facts) wanting(pod *corev1.Pod) bool {
	return !present(pod) || pod.Status.Phase != corev1.PodSucceeded && !(bound(pod) && f.Stands(pod.Spec.NodeName))
}

// growingSince returns when the first pod of the cohort was made; false when none has been, or others make them, who
// may have done so long before.
func growingSince(r *roster) (time.Time, bool) {
	var first time.Time
	for _, pod := range r.cohort() {
		if pod != nil && !rank.Theirs(pod) && (first.IsZero() || pod.CreationTimestamp.Time.Before(first)) {
			first = pod.CreationTimestamp.Time
		}
	}
	return first, !first.IsZero()
}
