package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// reasonGrow is the reason of the Started condition of a Run that grew.
const reasonGrow = string(rqv1.ReasonGrow)

// recordedGrowth returns the width that the Run is growing to by its status; 0 when it is not.
func (s *state) recordedGrowth() int32 {
	if s.Run.Status.Width == nil {
		return 0
	}
	return s.Run.Status.Width.Growing
}

// growth returns the width that the Run is to grow to: the one under way or, when none is, the one decided on. It returns 0
// when there is none, the Run does not desire it, or it is being shrunk.
func (s *state) growth() int32 {
	to := s.recordedGrowth()
	if to == 0 {
		to = s.GrowTo
	}
	if to <= s.granted || to > width(&s.Run.Spec).Desired || to > s.cutTo() || s.granted < s.recorded() {
		return 0
	}
	return to
}

// widest returns the width in GPUs that the Run has or is growing to.
func (s *state) widest() int32 { return max(s.granted, s.growing) }

// parts returns the active pods and the spares that the Run has at its width, and those of the cohort that it grows by.
func (s *state) parts() (pods, spares, cohortPods, cohortSpares []*corev1.Pod) {
	if s.growing == 0 {
		return s.pods, s.spares, nil, nil
	}
	d := s.Demand.At(int(s.granted) / s.Demand.GPUsPerPod)
	return s.pods[:d.Pods()], s.spares[:d.Spares()], s.pods[d.Pods():], s.spares[d.Spares():]
}

// core returns the active pods that the Run has without the cohort that it grows by.
func (s *state) core() []*corev1.Pod {
	pods, _, _, _ := s.parts()
	return pods
}

// cohort returns the pods by which the Run grows; nil where there is none.
func (s *state) cohort() []*corev1.Pod {
	_, _, pods, spares := s.parts()
	return slices.Concat(pods, spares)
}

// settleGrowth ends the growth that is under way: all of the cohort is bound, or it is given up, which leaves the Run as it
// was (R23).
func (s *state) settleGrowth() {
	if s.growing == 0 {
		return
	}
	if s.recordedGrowth() == s.growing && !slices.ContainsFunc(s.cohort(), s.awaited) {
		s.granted, s.growing = s.growing, 0
		return
	}
	if !s.stunted() {
		return
	}
	s.growing = 0
	s.Demand = s.Demand.At(int(s.granted) / s.Demand.GPUsPerPod)
	s.sort()
}

// awaited reports whether a pod of a cohort has still to be bound. One that has ended well was.
func (s *state) awaited(pod *corev1.Pod) bool {
	return pod == nil || !s.runs(pod) && pod.Status.Phase != corev1.PodSucceeded
}

// stunted reports whether the growth under way fails: the cohort does not fit, is not taken by the API server, is not bound in
// time or breaks, or the Run itself has lost a pod, which comes first.
func (s *state) stunted() bool {
	since, begun := s.growingSince()
	return s.Refusal != nil && s.Refusal.Grow || s.Problem != "" || begun && s.Now.Sub(since) > s.GangDeadline ||
		slices.ContainsFunc(s.cohort(), func(pod *corev1.Pod) bool { return pod != nil && pod.Status.Phase == corev1.PodFailed }) ||
		slices.ContainsFunc(s.core(), s.wanting)
}

// wanting reports whether an active pod is gone or going, or its node is.
func (s *state) wanting(pod *corev1.Pod) bool {
	return !present(pod) || pod.Status.Phase != corev1.PodSucceeded && (pod.Spec.NodeName == "" || !s.Stands(pod.Spec.NodeName))
}

// growingSince returns when the first pod of the cohort was made; false when none has been.
func (s *state) growingSince() (time.Time, bool) {
	var first time.Time
	for _, pod := range s.cohort() {
		if pod != nil && (first.IsZero() || pod.CreationTimestamp.Time.Before(first)) {
			first = pod.CreationTimestamp.Time
		}
	}
	return first, !first.IsZero()
}

// expected returns the parts that the Run should have a pod for: with the cohort, once the status says that it grows.
func (s *state) expected() (pods, spares []*corev1.Pod) {
	if s.growing != s.recordedGrowth() {
		pods, spares, _, _ = s.parts()
		return pods, spares
	}
	return s.pods, s.spares
}

// cohortOf returns the number of the cohort that a part is made in: 0 for the start and for replacements, and of those by
// which the Run grows one more than it has had.
func (s *state) cohortOf(part rank.Part) string {
	if s.growing == 0 || s.hasAt(s.granted, part) {
		return "0"
	}
	last := 0
	for _, pod := range s.cohort() {
		if pod != nil {
			return pod.Labels[rqv1.LabelCohort]
		}
	}
	for _, pod := range s.Pods {
		number, _ := strconv.Atoi(pod.Labels[rqv1.LabelCohort])
		last = max(last, number)
	}
	for _, lease := range s.Leases {
		last = max(last, int(lease.Spec.Cohort))
	}
	return strconv.Itoa(last + 1)
}

// change says which change of width is under way; empty when none is.
func (s *state) change() string {
	switch {
	case s.growing > 0:
		return fmt.Sprintf("Grow to %d", s.growing)
	case slices.ContainsFunc(s.beyond, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && holds(pod) }):
		return fmt.Sprintf("Shrink to %d", s.granted)
	}
	return ""
}
