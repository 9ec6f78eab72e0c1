package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// readyRest is how long a change of how many ranks are ready waits until it is written for its own sake: a wide Run's
// pods become ready one after the other, and a short one's end soon after.
const readyRest = 10 * time.Second

// readiness is how many ranks of a Run that runs are ready.
type readiness struct {
	count int32
	// due is when that is to be written, if nothing else is before; zero when the status says it.
	due time.Time
}

// readinessOf counts the ranks that are ready. What is not written yet has waited since the last so many have changed.
func readinessOf(f *facts, ranks []*corev1.Pod) readiness {
	var ready, others []time.Time
	for _, pod := range ranks {
		yes, since := rank.ReadySince(pod)
		if yes && active(pod) {
			ready = append(ready, since)
		} else {
			others = append(others, since)
		}
	}
	r := readiness{count: int32(len(ready))}
	changed, by := ready, int(r.count-f.Run.Status.Ready)
	if by < 0 {
		changed, by = others, -by
	}
	if by == 0 {
		return r
	}
	slices.SortFunc(changed, func(x, y time.Time) int { return y.Compare(x) })
	r.due = f.Now
	if by <= len(changed) && !changed[by-1].After(f.Now) { // else a clock is ahead, or the Run has become narrower
		r.due = changed[by-1].Add(readyRest)
	}
	return r
}

// readyBy returns by when a rank that is bound has to be ready; false when it has not.
func (f *facts) readyBy(pod *corev1.Pod) (time.Time, bool) {
	if f.Run == nil || pod == nil {
		return time.Time{}, false
	}
	most, lease := f.Run.Spec.StartupDeadline(), f.leaseOf[pod.UID]
	if most == 0 || lease == nil || !bound(pod) || !unfinished(pod) {
		return time.Time{}, false
	}
	return lease.HeldSince().Add(most), true
}

// late reports whether a rank was not ready by its deadline: it counts as one that has died (R39). What became unready
// since, or had been told to go by then, does not; nor is it known of a node whose loss is held back, or of a device
// that is broken.
func (f *facts) late(pod *corev1.Pod) bool {
	by, bounded := f.readyBy(pod)
	if !bounded || f.Now.Before(by) || f.Nodes[pod.Spec.NodeName].HeldBack || f.broken(pod) ||
		toldBefore(pod, by) {
		return false
	}
	ready, since := rank.ReadySince(pod)
	return !ready && !since.After(by)
}

// toldBefore reports whether a pod had been told to go before an instant: it has had its time to end since.
func toldBefore(pod *corev1.Pod, at time.Time) bool {
	by, told := rank.GoesBy(pod)
	grace := graceOf(&pod.Spec)
	if pod.DeletionTimestamp != nil {
		grace = ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	}
	// The API server tells whole seconds.
	return told && by.Add(-secondsOf(grace)).Before(at.Truncate(time.Second))
}

// lateEnd returns how a rank ended that was not ready by its deadline; false for any other.
func (f *facts) lateEnd(pod *corev1.Pod) (ending.Ending, bool) {
	if !f.late(pod) {
		return ending.Ending{}, false
	}
	by, _ := f.readyBy(pod)
	return ending.Late(pod, f.Run.Spec.StartupDeadline(), by), true
}

// nextLate returns when the next rank is late that is not ready; zero when none will be.
func nextLate(s *situation) (next time.Time) {
	for _, pod := range s.roster.ranks {
		by, bounded := s.facts.readyBy(pod)
		if !bounded || !s.facts.Now.Before(by) || next.Before(by) && !next.IsZero() {
			continue
		}
		if ready, _ := rank.ReadySince(pod); !ready {
			next = by
		}
	}
	return next
}

// coalesced returns a status, or the Run's own where all that has changed is how many ranks are ready, and that waits
// for more.
func coalesced(s *situation, next *rqv1.RunStatus) *rqv1.RunStatus {
	if due := s.ready.due; !due.IsZero() && s.facts.Now.Before(due) {
		waits := *next
		waits.Ready = s.facts.Run.Status.Ready
		return &waits
	}
	return next
}

// goneLate returns the pod of a rank that was not ready by its deadline, and is gone just now; empty for none.
func (f *facts) goneLate(index int) types.UID {
	for _, lease := range f.Leases {
		if lease.Spec.RunRef.UID == f.Run.UID && rank.Held(lease) == (rank.Part{Index: index}) &&
			f.podOf[lease.PodUID()] == nil && f.wasLate(lease) {
			return lease.PodUID()
		}
	}
	return ""
}

// wasLate reports whether a Lease was of a rank that was not ready by its deadline, as the Run's status says, or by
// what the book tells of its pod where that has no room.
func (f *facts) wasLate(lease *rqv1.Lease) bool {
	if f.toldOf(lease, func(d *rqv1.RunDeath) bool { return d.Sign == ending.NotReady }) {
		return true
	}
	left := f.Left[lease.PodUID()]
	return f.full() && left != nil && lease.Spec.Slice.Role == rqv1.RoleActive && f.late(left) && !f.wasEvicted(lease)
}
