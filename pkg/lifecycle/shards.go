package lifecycle

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// opportunistic reports whether the Run's pods are shards, which come and go one by one (R15).
func (s *state) opportunistic() bool { return s.Run != nil && s.Run.Spec.Opportunistic }

// shardsPhase returns the phase that the shards have brought the Run to: it runs while any of them does, and waits while none
// does. That some give way, or are lost, is no failure.
func (s *state) shardsPhase() rqv1.RunPhase {
	succeeded := 0
	for _, pod := range s.pods {
		switch {
		case pod == nil || s.reclaims(pod):
		case pod.Status.Phase == corev1.PodFailed && !s.lost(pod):
			return rqv1.RunFailed
		case pod.Status.Phase == corev1.PodSucceeded && pod.DeletionTimestamp == nil:
			succeeded++
		}
	}
	switch {
	case succeeded == len(s.pods):
		return rqv1.RunCompleted
	case s.expired():
		return rqv1.RunFailed
	case s.running() > 0:
		return rqv1.RunRunning
	}
	return rqv1.RunPending
}

// running returns the number of shards that run.
func (s *state) running() int {
	n := 0
	for _, pod := range s.pods {
		if alive(pod) && s.runs(pod) && !s.reclaims(pod) {
			n++
		}
	}
	return n
}

// mayWait returns how many more pods may be made. A Run may ask for a million shards: no more of them are there than have a place or
// could have one, and one that waits.
func (s *state) mayWait() int {
	if !s.opportunistic() || s.Shards == 0 {
		return math.MaxInt
	}
	left := s.Shards
	for _, pod := range s.pods {
		if pod != nil {
			left--
		}
	}
	return left
}

// reclaims reports whether a shard has been told to give its GPUs back.
func (s *state) reclaims(pod *corev1.Pod) bool {
	if !s.opportunistic() {
		return false
	}
	_, told := s.Reclaimed(pod.UID)
	return told
}

// noticeOfReclaim is what a shard is told that gives way: whoever is given its GPUs does not wait for long.
func (s *state) noticeOfReclaim(pod *corev1.Pod) *Notice {
	reason, _ := s.Reclaimed(pod.UID)
	seconds := wholeSeconds(s.OpportunisticGrace)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = min(seconds, *own)
	}
	return &Notice{Reason: reason, Message: needed(reason), GraceSeconds: seconds}
}

// needed says why shards give way.
func needed(reason rqv1.ClosureReason) string {
	if reason == rqv1.ClosedReclaimedBySpare {
		return "the spare on these GPUs is needed in place of a failed node"
	}
	return "another Run has been given these GPUs"
}

// reasonOfShard says why the Lease of a shard that is gone ended; empty when it ended for what ends other pods too.
func (s *state) reasonOfShard(lease *rqv1.Lease) rqv1.ClosureReason {
	if lease.Spec.Slice.Role != rqv1.RoleBorrowed {
		return ""
	}
	if reason, told := s.Reclaimed(lease.PodUID()); told {
		return reason
	}
	if pod := s.byUID[lease.PodUID()]; pod != nil {
		for i := range pod.Status.Conditions {
			c := &pod.Status.Conditions[i]
			reason := rqv1.ClosureReason(c.Reason)
			if c.Type == corev1.DisruptionTarget && (reason == rqv1.ClosedReclaimed || reason == rqv1.ClosedReclaimedBySpare) {
				return reason // an earlier process told it
			}
		}
	}
	if reason, said := s.saidReclaimed(lease); said {
		return reason // likewise, and the pod is gone
	}
	switch {
	case s.Demand.GPUsPerPod > 0 && !s.has(rank.Held(lease)):
		return rqv1.ClosedShrink
	case s.phase == rqv1.RunFailed:
		return rqv1.ClosedFailed
	}
	return rqv1.ClosedDeleted
}

// shards says how many shards run, and what the others wait for.
func (s *state) shards() (reason, message string) {
	running, ended := s.running(), 0
	for _, pod := range s.pods {
		if pod != nil && !holds(pod) {
			ended++
		}
	}
	message = fmt.Sprintf("%d of %d shards run", running, len(s.pods))
	if ended > 0 {
		message += fmt.Sprintf(", %d have ended", ended)
	}
	reason = "Started"
	if running == 0 {
		reason = "Waiting"
	}
	switch waiting := len(s.pods) - running - ended; {
	case waiting == 0:
	case s.Refusal != nil:
		message += "; the others wait: " + s.Refusal.Message
		if running == 0 {
			reason = string(s.Refusal.Reason)
		}
	default:
		message += "; the others wait for idle GPUs"
	}
	return reason, message
}
