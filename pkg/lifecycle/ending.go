package lifecycle

import (
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// deletions returns the pods of a kind, to be deleted; those that are cut get notice.
func (s *state) deletions(pods []*corev1.Pod, kind func(*corev1.Pod) bool) []Deletion {
	var out []Deletion
	for _, pod := range pods {
		if kind(pod) {
			out = append(out, Deletion{Pod: pod, Notice: s.notice(pod)})
		}
	}
	return out
}

// leaving returns the pods that are to go while the Run stands: those that seem to have lost their node or to run without a
// Lease, that have a Lease and cannot be bound where it says, that are cut, that are beyond the width of a Run that runs,
// spares that have ended, and spares whose room a rank is to have: others take their place.
func (s *state) leaving() []Deletion {
	out := s.leavingOf(s.pods, func(pod *corev1.Pod) bool { return s.doomed(pod) || s.again(pod) || s.reclaims(pod) })
	out = append(out, s.leavingOf(s.spares, func(pod *corev1.Pod) bool {
		return !holds(pod) || s.doomed(pod) || s.claims[pod.UID] != nil
	})...)
	if s.narrowed() || s.opportunistic() {
		out = append(out, s.leavingOf(s.beyond, present)...)
	}
	return out
}

// leavingOf returns those of some pods that are suspect, and those there that are to go.
func (s *state) leavingOf(pods []*corev1.Pod, goes func(*corev1.Pod) bool) []Deletion {
	var out []Deletion
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		found := s.suspect(pod)
		if len(found) == 0 && present(pod) && goes(pod) {
			found = s.deletions([]*corev1.Pod{pod}, present)
		}
		out = append(out, found...)
	}
	return out
}

// again reports whether the pod of a rank waits in vain and is made anew, to take the place of a spare.
func (s *state) again(pod *corev1.Pod) bool {
	index, _ := strconv.Atoi(pod.Labels[rqv1.LabelIndex]) // it has its rank by it
	return s.relief[index].Spare != ""
}

// suspect returns a pod that something seems to be wrong with. What has ended well needs no node.
func (s *state) suspect(pod *corev1.Pod) []Deletion {
	if pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	node, stuck := pod.Spec.NodeName, false
	if lease := s.leases[pod.UID]; lease != nil && node == "" {
		node = lease.Node()
		stuck = s.Now.Sub(lease.Spec.Start.Time) > s.GangDeadline
	}
	switch {
	case stuck && alive(pod):
		return []Deletion{{Pod: pod, Node: node}}
	case node == "":
	case !s.Stands(node):
		return []Deletion{{Pod: pod, If: NodeLost, Node: node}}
	case pod.Spec.NodeName != "" && alive(pod) && s.leases[pod.UID] == nil && !s.Leased[pod.UID]:
		return []Deletion{{Pod: pod, If: Unpaid, Node: node}}
	}
	return nil
}

// closings returns the Leases whose pods hold nothing any more. A pod that terminates still holds its GPUs (R28).
func (s *state) closings() []Closing {
	var out []Closing
	for _, lease := range s.Leases {
		pod := s.byUID[lease.PodUID()]
		switch {
		case pod == nil, pod.DeletionTimestamp != nil && !holds(pod):
			out = append(out, Closing{Lease: lease, Reason: s.reasonGone(lease)})
		case pod.Status.Phase == corev1.PodSucceeded:
			out = append(out, Closing{Lease: lease, Reason: rqv1.ClosedCompleted})
		case pod.Status.Phase == corev1.PodFailed && !s.Stands(pod.Spec.NodeName):
			out = append(out, Closing{Lease: lease, Reason: rqv1.ClosedNodeFailure})
		case pod.Status.Phase == corev1.PodFailed:
			out = append(out, Closing{Lease: lease, Reason: rqv1.ClosedFailed})
		}
	}
	if len(out) > 0 {
		began := s.successors()
		for i := range out {
			out[i].Ended = succeeded(out[i].Lease, began[seatOf(out[i].Lease)])
		}
	}
	return out
}

// seat is one rank, or one spare, of one Run.
type seat struct {
	run  types.UID
	part rank.Part
}

func seatOf(lease *rqv1.Lease) seat { return seat{lease.Spec.RunRef.UID, rank.Held(lease)} }

// successors returns when Leases began, by rank, for ranks that have several. The ledger may tell of a Lease late: one that a
// process was writing when it died, for a pod that has gone since and been replaced. Its rank holds GPUs by one at a time.
func (s *state) successors() map[seat][]time.Time {
	began := map[seat][]time.Time{}
	for _, lease := range s.Leases {
		began[seatOf(lease)] = append(began[seatOf(lease)], lease.Spec.Start.Time)
	}
	maps.DeleteFunc(began, func(_ seat, at []time.Time) bool { return len(at) < 2 })
	return began
}

// succeeded returns when the next Lease of the same rank began; zero when there is none.
func succeeded(lease *rqv1.Lease, began []time.Time) (next time.Time) {
	for _, at := range began {
		if at.After(lease.Spec.Start.Time) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// reasonGone says why a Lease whose pod is gone ended.
func (s *state) reasonGone(lease *rqv1.Lease) rqv1.ClosureReason {
	switch {
	case !s.Stands(lease.Node()):
		return rqv1.ClosedNodeFailure
	case s.claims[lease.PodUID()] != nil:
		return rqv1.ClosedSwap
	case s.Run == nil || s.Run.UID != lease.Spec.RunRef.UID || s.Run.DeletionTimestamp != nil:
		return rqv1.ClosedDeleted
	}
	if cut := s.cutOf(lease); cut != nil {
		return reasonOf(cut)
	}
	if reason := s.reasonOfShard(lease); reason != "" {
		return reason
	}
	said := s.saidCut(lease)
	switch {
	case said != "":
		return said
	case s.phase == rqv1.RunRunning && !s.has(rank.Held(lease)):
		return rqv1.ClosedShrink
	case s.phase == rqv1.RunFailed:
		return rqv1.ClosedFailed
	case s.phase == rqv1.RunPending:
		return rqv1.ClosedUnwound
	case s.phase == rqv1.RunCompleted && lease.Spec.Slice.Role == rqv1.RoleSpare:
		return rqv1.ClosedCompleted
	}
	return rqv1.ClosedDeleted
}

// saidCut returns why the Run was cut, by its own status, if a Lease is of before that: the Reservation may have been canceled
// since. It is empty for other Leases.
func (s *state) saidCut(lease *rqv1.Lease) rqv1.ClosureReason {
	for _, kind := range []string{rqv1.ConditionFinished, rqv1.ConditionStarted} {
		c := meta.FindStatusCondition(s.Run.Status.Conditions, kind)
		if c != nil && c.Reason == reasonRandomPreempt && lease.Spec.Start.Time.Before(c.LastTransitionTime.Time) {
			return rqv1.ClosureReason(c.Reason)
		}
	}
	return ""
}
