package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A pod holds its GPUs until it is gone, so nobody may say for himself how long that takes (R37): others wait for them.

// wholeSeconds returns a time in seconds, rounded up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// grace returns what a pod of a spec has to end, unless it is told otherwise.
func grace(spec *corev1.PodSpec) int64 {
	if own := spec.TerminationGracePeriodSeconds; own != nil {
		return *own
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// longestGrace is the most that any pod has to end: what it may be made with, or a notice period where that is longer.
func (s *state) longestGrace() int64 {
	return max(wholeSeconds(s.MaxGracePeriod), wholeSeconds(s.NoticePeriod))
}

// capGrace has a pod that is made have no more to end than is allowed.
func (s *state) capGrace(spec *corev1.PodSpec) {
	if most := wholeSeconds(s.MaxGracePeriod); grace(spec) > most {
		spec.TerminationGracePeriodSeconds = &most
	}
}

// bounded has pods that are deleted end in time which were made with more to end than is allowed, and adds those that were
// told to go by others and given too long: deleted again they have what is left of that.
func (s *state) bounded(deletions []Deletion) []Deletion {
	most := s.longestGrace()
	known := map[types.UID]bool{}
	for i := range deletions {
		d := &deletions[i]
		known[d.Pod.UID] = true
		if d.Notice == nil && d.If != NodeLost && grace(&d.Pod.Spec) > most {
			d.GraceSeconds = &most
		}
	}
	for _, pod := range s.Pods {
		given := pod.DeletionGracePeriodSeconds
		if _, ours := s.runOf(pod); ours && !known[pod.UID] && holds(pod) && given != nil && *given > most {
			deletions = append(deletions, Deletion{Pod: pod, GraceSeconds: &most})
		}
	}
	return deletions
}

// cappedGrace says that the Run's pods are made with less to end than its template asks for; empty when they are not.
func (s *state) cappedGrace() string {
	if s.Run.Spec.Template == nil || s.Run.Spec.Template.Spec.TerminationGracePeriodSeconds == nil {
		return ""
	}
	asked, most := *s.Run.Spec.Template.Spec.TerminationGracePeriodSeconds, wholeSeconds(s.MaxGracePeriod)
	if asked <= most {
		return ""
	}
	return fmt.Sprintf("spec.template.spec.terminationGracePeriodSeconds is %d; the Run's pods have %d, the most that this scheduler allows "+
		"(maxGracePeriod, R37)", asked, most)
}

// setGrace says so in a condition, which is absent otherwise.
func (s *state) setGrace(next *rqv1.RunStatus) {
	message := s.cappedGrace()
	if message == "" {
		meta.RemoveStatusCondition(&next.Conditions, rqv1.ConditionGraceCapped)
		return
	}
	s.setCondition(next, metav1.Condition{Type: rqv1.ConditionGraceCapped, Status: metav1.ConditionTrue, Reason: "MaxGracePeriod",
		Message: message, ObservedGeneration: s.Run.Generation})
}
