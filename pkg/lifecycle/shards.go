package lifecycle

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// shardsToMake returns how many more ranks may be made. A Run may ask for a million shards: no more of them are there
// than have a place or could have one, and one that waits.
func shardsToMake(f *facts, ranks []*corev1.Pod) int {
	if !f.opportunistic() || f.Shards == 0 {
		return math.MaxInt
	}
	left := f.Shards
	for _, pod := range ranks {
		if pod != nil {
			left--
		}
	}
	return left
}

// reasonOfShard says why the Lease of a shard that is gone ended; empty for the Lease of another pod. That the shard
// was told to give way is known from the book, from its pod when an earlier process told it, or from the Run's status
// when that pod is gone.
func reasonOfShard(s *situation, lease *rqv1.Lease) rqv1.ClosureReason {
	if lease.Spec.Slice.Role != rqv1.RoleBorrowed {
		return ""
	}
	if reason, told := s.facts.Reclaimed(lease.PodUID()); told {
		return reason
	}
	if reason, told := toldToGo(s.facts.podOf[lease.PodUID()]); told {
		return reason
	}
	if reason, said := s.facts.told.reasonFor(s.facts.Run, lease); said {
		return reason
	}
	switch {
	case s.gaveUp(lease):
		return rqv1.ClosedSuspended
	case s.facts.Shape == nil && !s.has(rank.Held(lease)):
		return rqv1.ClosedShrink
	case s.phase == rqv1.RunFailed:
		return rqv1.ClosedFailed
	case s.facts.endedByNode(lease):
		return rqv1.ClosedEvicted
	}
	return rqv1.ClosedDeleted
}

// toldToGo returns why a pod, if it is there, was told to give its GPUs back, by its own conditions: for others, or for
// maintenance.
func toldToGo(pod *corev1.Pod) (rqv1.ClosureReason, bool) {
	if pod == nil {
		return "", false
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		reason := rqv1.ClosureReason(c.Reason)
		if c.Type == corev1.DisruptionTarget && slices.Contains(reasonsToGiveWay, reason) {
			return reason, true
		}
	}
	return "", false
}

// storyOfShards says how many shards run, and what the others wait for.
func storyOfShards(f *facts, shards []*corev1.Pod) (reason, message string) {
	running, ended := runningShards(f, shards), 0
	for _, pod := range shards {
		if pod != nil && !unfinished(pod) {
			ended++
		}
	}
	message = fmt.Sprintf("%d of %d shards run", running, len(shards))
	if ended > 0 {
		message += fmt.Sprintf(", %d have ended", ended)
	}
	reason = "Started"
	if running == 0 {
		reason = "Waiting"
	}
	switch waiting := len(shards) - running - ended; {
	case waiting == 0:
	case f.Refusal != nil:
		message += "; the others wait: " + f.Refusal.Message
		if running == 0 {
			reason = string(f.Refusal.Reason)
		}
	default:
		message += "; the others wait for idle GPUs"
	}
	return reason, message
}
