package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// setReclaimed says which shards gave way last, when, and why. The condition is absent until one does. It is written
// before the shards' pods are deleted, and tells of a shard until its Lease is closed: a process that takes over when
// the pods are gone closes their Leases by it.
func setReclaimed(c conditions, s *situation) {
	f := s.facts
	told, last := map[int]rqv1.ClosureReason{}, rqv1.ClosureReason("")
	for index, pod := range s.roster.ranks {
		if pod == nil || !f.reclaims(pod) || !f.leased(pod) {
			continue
		}
		if reason, said := f.saidReclaimed(index, pod); said {
			told[index] = reason // also where no cache has its Lease yet
		} else if active(pod) {
			last, _ = f.Reclaimed(pod.UID)
			told[index] = last
		}
	}
	if last == "" {
		return
	}
	for _, lease := range f.Leases {
		index := rank.Held(lease).Index
		if reason, said := f.told.reasonFor(f.Run, lease); said && told[index] == "" {
			told[index] = reason
		}
	}
	c.renew(rqv1.ConditionReclaimed, saying{string(last), gaveWay(told)})
}

// tellsOfShards reports whether a status tells of shards that the Run's own does not tell of; false for no status.
func tellsOfShards(run *rqv1.Run, next *rqv1.RunStatus) bool {
	if next == nil {
		return false
	}
	said := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionReclaimed)
	says := meta.FindStatusCondition(next.Conditions, rqv1.ConditionReclaimed)
	return says != nil && (said == nil || *said != *says)
}

// givesWay reports whether a pod is there and is a shard that has been told to go.
func (f *facts) givesWay(pod *corev1.Pod) bool { return active(pod) && f.reclaims(pod) }

// leased reports whether a pod has a Lease, or may have one by now, which is going to be closed.
func (f *facts) leased(pod *corev1.Pod) bool {
	return f.leaseOf[pod.UID] != nil || f.Leased[pod.UID] || f.Opening[pod.UID]
}

// saidReclaimed returns why a shard gave way, by the Run's status; false when that does not say so yet. Of a Lease that
// is not listed yet it is known only that it is no older than the pod.
func (f *facts) saidReclaimed(index int, pod *corev1.Pod) (rqv1.ClosureReason, bool) {
	since := pod.CreationTimestamp.Time
	if lease := f.leaseOf[pod.UID]; lease != nil {
		since = lease.HeldSince()
	}
	return f.told.says(index, since)
}
