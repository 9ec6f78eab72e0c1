package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// setReclaimed says which shards gave way last, when, and why. The condition is absent until one does. It is written
// before the shards' pods are deleted, and tells of a shard until its Lease is closed: a process that takes over when
// the pods are gone closes their Leases by it.
func setReclaimed(c conditions, s *situation) {
	f := s.facts
	told, last := map[int]bool{}, rqv1.ClosureReason("")
	for index, pod := range s.roster.ranks {
		if !f.givesWay(pod) || !f.leased(pod) || f.saidReclaimed(index, pod) {
			continue
		}
		told[index] = true
		last, _ = f.Reclaimed(pod.UID)
	}
	if len(told) == 0 {
		return
	}
	for _, lease := range f.Leases {
		if reason, said := f.told.reasonFor(f.Run, lease); said && reason == last {
			told[rank.Held(lease).Index] = true
		}
	}
	c.renew(rqv1.ConditionReclaimed, saying{string(last), gaveWay(told) + needed(last)})
}

// givesWay reports whether a pod is there and is a shard that has been told to go.
func (f *facts) givesWay(pod *corev1.Pod) bool { return active(pod) && f.reclaims(pod) }

// leased reports whether a pod has a Lease, which is going to be closed.
func (f *facts) leased(pod *corev1.Pod) bool { return f.leaseOf[pod.UID] != nil || f.Leased[pod.UID] }

// saidReclaimed reports whether the Run's status says already that a shard gave way. Of a Lease that is not listed yet
// it is known only that it is no older than the pod.
func (f *facts) saidReclaimed(index int, pod *corev1.Pod) bool {
	since := pod.CreationTimestamp.Time
	if lease := f.leaseOf[pod.UID]; lease != nil {
		since = lease.Spec.Start.Time
	}
	return f.told.says(index, since)
}
