package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// noticeFor returns what a pod is told that is to go; nil when it is not cut, or holds nothing any more.
// One that says that it is done has no longer than it takes.
func noticeFor(s *situation, pod *corev1.Pod) *Notice {
	if !bound(pod) || !unfinished(pod) {
		return nil
	}
	n := fullNotice(s, pod)
	if n != nil && s.facts.takeMe(pod) {
		n.GraceSeconds = min(n.GraceSeconds, atOnce)
	}
	return n
}

// fullNotice returns it with the time to end that a pod has which is not done.
func fullNotice(s *situation, pod *corev1.Pod) *Notice {
	cut, lease := s.cuts.final, s.facts.leaseOf[pod.UID]
	if cut == nil && lease != nil {
		cut = s.cuts.of(lease)
	}
	switch {
	case s.facts.reclaims(pod):
		return s.facts.noticeOfReclaim(pod)
	case cut != nil && cut.ForRank:
		return s.facts.noticeForRank(pod, reasonOf(cut), purpose(cut))
	case cut != nil:
		return s.facts.notice(pod, reasonOf(cut), purpose(cut))
	case lease != nil && s.facts.preempted(lease):
		said := preemption(s.facts.Run)
		if said.Reason == reasonPriorityPreempt {
			return s.facts.noticeForRank(pod, rqv1.ClosedPriorityPreempt, said.Message)
		}
		return s.facts.notice(pod, rqv1.ClosedRandomPreempt, s.facts.Run.Status.Message)
	case s.leavesNode(pod):
		return s.facts.noticeOfMaintenance(pod)
	case lease != nil && s.narrowed() && !s.has(rank.Held(lease)):
		return s.facts.notice(pod, rqv1.ClosedShrink, fmt.Sprintf("the Run is shrunk to %d GPUs", s.width.granted))
	}
	return nil
}

// notice returns what a pod is told that is cut: it has the notice period to end, or its own grace period where that is
// longer.
func (r *Rules) notice(pod *corev1.Pod, reason rqv1.ClosureReason, message string) *Notice {
	seconds := wholeSeconds(r.NoticePeriod)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = max(seconds, *own)
	}
	return &Notice{Reason: reason, Message: message, GraceSeconds: min(seconds, r.longestGrace())}
}

// noticeForRank returns what a pod is told that goes for a lost rank: it has its own grace period, as with any
// scheduler that preempts. A Run that runs stands still meanwhile, so that there is no notice period on top of it.
func (r *Rules) noticeForRank(pod *corev1.Pod, reason rqv1.ClosureReason, message string) *Notice {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = *own
	}
	return &Notice{Reason: reason, Message: message, GraceSeconds: max(atOnce, min(seconds, r.longestGrace()))}
}

// noticeOfReclaim returns what a shard is told that gives way: whoever is given its GPUs does not wait for long. With
// no time at all its object would go before its containers have ended, as if it was deleted by force.
func (f *facts) noticeOfReclaim(pod *corev1.Pod) *Notice {
	reason, _ := f.Reclaimed(pod.UID)
	seconds := max(atOnce, wholeSeconds(f.OpportunisticGrace))
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = min(seconds, *own)
	}
	return &Notice{Reason: reason, Message: needed(reason), GraceSeconds: seconds}
}
