package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A pod holds its GPUs until it is gone, so nobody may say for himself how long that takes (R37): others wait for them.

// wholeSeconds returns a time in seconds, rounded up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// graceOf returns what a pod of a spec has to end, unless it is told otherwise.
func graceOf(spec *corev1.PodSpec) int64 {
	if own := spec.TerminationGracePeriodSeconds; own != nil {
		return *own
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// secondsOf is a number of seconds as a duration, a hundred years at most: what people write may be any number.
func secondsOf(n int64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return time.Duration(min(max(n, -most), most)) * time.Second
}

// longestGrace is the most that any pod has to end: what it may be made with, or a notice period where that is longer.
func (r *Rules) longestGrace() int64 {
	return max(wholeSeconds(r.MaxGracePeriod), wholeSeconds(r.NoticePeriod))
}

// capGrace has a pod that is made have no more to end than is allowed.
func (r *Rules) capGrace(spec *corev1.PodSpec) {
	if most := wholeSeconds(r.MaxGracePeriod); graceOf(spec) > most {
		spec.TerminationGracePeriodSeconds = &most
	}
}

// cutShort returns what the template of a Run asks for its pods to end, and what they have; false when they have what
// it asks.
func (r *Rules) cutShort(run *rqv1.Run) (asked, most int64, short bool) {
	if run.Spec.Template == nil || run.Spec.Template.Spec.TerminationGracePeriodSeconds == nil {
		return 0, 0, false
	}
	asked, most = *run.Spec.Template.Spec.TerminationGracePeriodSeconds, wholeSeconds(r.MaxGracePeriod)
	return asked, most, asked > most
}
