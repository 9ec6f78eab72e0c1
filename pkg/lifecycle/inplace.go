package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// overdue is how long a kubelet may take beyond a pod's grace period to end it where it is: it looks at deadlines every
// few seconds. A pod that is still there then is deleted.
const overdue = 30 * time.Second

// endedInPlace returns how the ranks of a Run that has ended go. Those of one that has failed are ended where they are,
// if that can be: a deleted pod takes along what it has printed, and that may tell why the Run failed.
func endedInPlace(s *situation) []Deletion {
	var out []Deletion
	for _, d := range endedBy(s, s.roster.ranks, active) {
		by, told := rank.GoesBy(d.Pod)
		switch {
		case !s.endsInPlace(&d), told && !s.facts.Now.Before(by.Add(overdue)):
			out = append(out, d)
		case !told:
			d.By = s.facts.Now.Add(secondsOf(graceOf(&d.Pod.Spec))).Truncate(time.Second)
			out = append(out, d)
		}
	}
	return out
}

// endsInPlace reports whether a kubelet is there to end a pod that others need not wait for: whoever is cut has given
// its GPUs away.
func (s *situation) endsInPlace(d *Deletion) bool {
	f, pod := s.facts, d.Pod
	return s.phase == rqv1.RunFailed && d.Notice == nil && !rank.Theirs(pod) && pod.Status.Phase == corev1.PodRunning &&
		f.Stands(pod.Spec.NodeName) && graceOf(&pod.Spec) <= f.longestGrace()
}

// overdueRest is how long after a look the next is while pods are overdue that are there although they were deleted, or
// could not be.
const overdueRest = 5 * time.Second

// untilOverdue returns when the first pod is overdue that is to end where it is; 0 when none is. Pods of others are
// never told to, whatever they say.
func untilOverdue(s *situation) time.Duration {
	due := time.Duration(0)
	for _, pod := range s.roster.ranks {
		if !active(pod) || rank.Theirs(pod) {
			continue
		}
		if by, told := rank.GoesBy(pod); told {
			left := by.Add(overdue).Sub(s.facts.Now)
			if left <= 0 {
				left = overdueRest
			}
			due = Soonest(due, left)
		}
	}
	return due
}
