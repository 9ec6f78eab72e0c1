package lifecycle

import (
	"cmp"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// closings returns the Leases whose pods hold nothing any more, for the reason that a pod which is gone has, and those
// that are to say until when they are open for containers whose pod is gone. A pod that terminates still holds its GPUs
// (R28). Of whose end the book has not heard, an event is on its way that looks again.
func closings(f *facts, reasonGone func(*rqv1.Lease) rqv1.ClosureReason) (out, outlived []Closing) {
	for _, lease := range f.Leases {
		pod := f.podOf[lease.PodUID()]
		switch {
		case pod == nil && f.Here[lease.PodUID()]:
		case f.outlived(lease) && lease.Status.EndsBy != nil && f.endsBy(lease).Equal(lease.Status.EndsBy.Time):
		case f.outlived(lease):
			outlived = append(outlived, Closing{Lease: lease, Reason: reasonGone(lease), Ended: f.endsBy(lease)})
		case pod == nil, !present(pod) && !unfinished(pod):
			out = append(out, Closing{Lease: lease, Reason: reasonGone(lease)})
		case pod.Status.Phase == corev1.PodSucceeded:
			out = append(out, Closing{Lease: lease, Reason: rqv1.ClosedCompleted})
		case pod.Status.Phase == corev1.PodFailed && !f.Stands(pod.Spec.NodeName):
			out = append(out, Closing{Lease: lease, Reason: rqv1.ClosedNodeFailure})
		case f.evicted(pod):
			out = append(out, Closing{Lease: lease, Reason: rqv1.ClosedEvicted})
		case pod.Status.Phase == corev1.PodFailed:
			out = append(out, Closing{Lease: lease, Reason: rqv1.ClosedFailed})
		}
	}
	for i := range out {
		out[i].Cause = f.causeOf(out[i].Reason, out[i].Lease)
	}
	if ended := len(out); ended+len(outlived) > 0 {
		out = append(out, outlived...)
		f.noteLost(out)
		out, outlived = out[:ended:ended], out[ended:]
		began := successors(f.Leases)
		for i := range out {
			if _, vanished := f.Vanished[out[i].Lease.PodUID()]; vanished || out[i].Lease.Status.EndsBy != nil {
				continue // its rank may have another place since, whether or not the Lease could say so
			}
			out[i].Ended = nextBegan(out[i].Lease, began[seatOf(out[i].Lease)])
			if !out[i].Ended.IsZero() && out[i].Reason == rqv1.ClosedDeleted {
				out[i].Reason = rqv1.ClosedUnwound // its pod was never bound: a pod is replaced once its Lease is closed
			}
		}
	}
	return out, outlived
}

// doubted has it made certain that nothing is wrong with the nodes of pods which seem to have gone for no reason, or by
// their own: news of nodes and of pods come apart, and a rank whose node is lost is its spare's, or makes the Run wait.
// Whoever cleans up after a node that is gone evicts its pods as well.
func (f *facts) doubted(closings []Closing) []Closing {
	for i := range closings {
		switch c := &closings[i]; c.Reason {
		case rqv1.ClosedDeleted, rqv1.ClosedFailed, rqv1.ClosedMaintenance:
			c.If = NodeStands
		case rqv1.ClosedEvicted:
			if f.podOf[c.Lease.PodUID()] == nil {
				c.If = NodeStands
			}
		}
	}
	return closings
}

// seat is one rank, or one spare, of one Run.
type seat struct {
	run  types.UID
	part rank.Part
}

func seatOf(lease *rqv1.Lease) seat { return seat{lease.Spec.RunRef.UID, rank.Held(lease)} }

// successors returns when Leases began, by rank, for ranks that have several. The ledger may tell of a Lease late: one
// that a process was writing when it died, for a pod that has gone since and been replaced. Its rank holds GPUs by one
// at a time.
func successors(leases []*rqv1.Lease) map[seat][]time.Time {
	began := map[seat][]time.Time{}
	for _, lease := range leases {
		began[seatOf(lease)] = append(began[seatOf(lease)], lease.Spec.Start.Time)
	}
	maps.DeleteFunc(began, func(_ seat, at []time.Time) bool { return len(at) < 2 })
	return began
}

// nextBegan returns when the next Lease of the same rank began; zero when there is none.
func nextBegan(lease *rqv1.Lease, began []time.Time) (next time.Time) {
	for _, at := range began {
		if at.After(lease.Spec.Start.Time) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// reasonWithoutRun says why a Lease ended whose pod is gone, and whose Run is or is being deleted.
func (f *facts) reasonWithoutRun(lease *rqv1.Lease) rqv1.ClosureReason {
	if !f.Stands(lease.Node()) {
		return rqv1.ClosedNodeFailure
	}
	return rqv1.ClosedDeleted
}

// neverBound reports whether a pod that others had made has gone before it was bound: no program has run.
func neverBound(left *corev1.Pod) bool { return left != nil && rank.Theirs(left) && !bound(left) }

// reasonGone says why a Lease whose pod is gone ended.
func (s *situation) reasonGone(lease *rqv1.Lease) rqv1.ClosureReason {
	run := s.facts.Run
	switch {
	case !s.facts.Stands(lease.Node()):
		return rqv1.ClosedNodeFailure
	case s.swaps.claims[lease.PodUID()] != nil:
		return rqv1.ClosedSwap
	case run.UID != lease.Spec.RunRef.UID:
		return rqv1.ClosedDeleted
	}
	if cut := s.cuts.of(lease); cut != nil {
		return reasonOf(cut)
	}
	if reason := reasonOfShard(s, lease); reason != "" {
		return reason
	}
	switch {
	case s.facts.preempted(lease):
		return rqv1.ClosureReason(preemption(run).Reason)
	case s.facts.movedOn(lease), s.facts.wasLate(lease):
		return rqv1.ClosedFailed
	case s.facts.wasEvicted(lease):
		return rqv1.ClosedEvicted
	case s.facts.timedOut(lease):
		return rqv1.ClosedTimedOut
	case s.gaveUp(lease):
		return rqv1.ClosedSuspended
	case s.phase == rqv1.RunRunning && (!s.has(rank.Held(lease)) || !s.width.had(run, rank.Held(lease))):
		return rqv1.ClosedShrink
	case s.phase == rqv1.RunRunning && s.facts.leftForMaintenance(lease):
		return rqv1.ClosedMaintenance
	case s.phase == rqv1.RunFailed:
		return rqv1.ClosedFailed
	case s.phase == rqv1.RunPending, s.phase == rqv1.RunRunning && neverBound(s.facts.Left[lease.PodUID()]):
		return rqv1.ClosedUnwound
	case s.phase == rqv1.RunCompleted && lease.Spec.Slice.Role == rqv1.RoleSpare:
		return rqv1.ClosedCompleted
	}
	if s.facts.theirs() && s.facts.hadCompleted(lease) {
		return rqv1.ClosedCompleted
	}
	return rqv1.ClosedDeleted
}

// hadCompleted reports whether the pod of a Lease had completed before it was told to go, as the book has seen it or,
// where the book has not, as it tells itself.
func (f *facts) hadCompleted(lease *rqv1.Lease) bool {
	pod := cmp.Or(f.Left[lease.PodUID()], f.podOf[lease.PodUID()])
	if pod == nil || pod.Status.Phase != corev1.PodSucceeded || pod.DeletionTimestamp == nil {
		return pod != nil && pod.Status.Phase == corev1.PodSucceeded
	}
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	told := pod.DeletionTimestamp.Add(-secondsOf(grace))
	ended := time.Time{}
	for i := range pod.Status.ContainerStatuses {
		if t := pod.Status.ContainerStatuses[i].State.Terminated; t != nil && t.FinishedAt.After(ended) {
			ended = t.FinishedAt.Time
		}
	}
	return !ended.IsZero() && (ended.Before(told) || grace == 0 && ended.Equal(told))
}
