package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Word is what a pod of others is told while it waits, in its condition PodScheduled.
type Word struct {
	Pod             *corev1.Pod
	Reason, Message string
}

// Reasons of condition PodScheduled. Autoscalers read Unschedulable, and add nodes for it: others are for what no node
// would mend.
const (
	notFunded = "NotFunded"
	notServed = "NotServed"
)

// wordRest is how long a pod is told nothing new for the same reason: the numbers in it move.
const wordRest = time.Minute

// wordsFor returns what those pods of others are told that never get as far as a cycle of kube-scheduler, which would
// tell them: nobody can pay for their Run, or it fits no node that there is. Of one that runs these are those that came
// too late. Who was told so and waits for room by now is told that. After is when to look again, 0 for never.
func wordsFor(s *situation) (words []Word, after time.Duration) {
	f := s.facts
	r := f.Refusal
	if f.Shape != nil {
		r = f.Shape
	}
	if !f.theirs() || !s.goesOn() || s.suspends() || r == nil || r.Message == "" ||
		s.phase != rqv1.RunPending && !r.Belated {
		return nil, 0
	}
	reason := reasonFor(r)
	for index, pod := range s.roster.ranks {
		if r.Belated && !f.gaveUp(index) || !active(pod) || bound(pod) || !rank.Theirs(pod) || f.leaseOf[pod.UID] != nil {
			continue
		}
		is := scheduledOf(pod)
		ours := is.Reason == notFunded || is.Reason == notServed
		switch rests := is.LastProbeTime.Add(wordRest).Sub(f.Now); {
		case f.Shape == nil && !r.LacksMoney() && !ours, is.Status == corev1.ConditionTrue:
		case is.Reason == reason && is.Message == r.Message:
		case is.Reason == reason && rests > 0:
			after = Soonest(after, rests)
		default:
			words = append(words, Word{Pod: pod, Reason: reason, Message: Shortened(r.Message, longestMessage)})
		}
	}
	return words, after
}

// reasonFor returns the reason that a refusal is told for.
func reasonFor(r *plan.Refusal) string {
	switch {
	case r.LacksMoney():
		return notFunded
	case r.Reason == plan.WrongResource || r.Reason == plan.Unsupported:
		return notServed
	}
	return corev1.PodReasonUnschedulable
}

// scheduledOf returns a pod's condition PodScheduled, an empty one where it has none.
func scheduledOf(pod *corev1.Pod) corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled
	})
	if at < 0 {
		return corev1.PodCondition{}
	}
	return pod.Status.Conditions[at]
}
