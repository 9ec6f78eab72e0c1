package lifecycle

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// setReclaimed says which shards gave way last, when, and why. The condition is absent until one does. It is written before their
// pods are deleted, and those of whom the Lease is still open stay in it: a process that takes over when the pods are gone closes
// their Leases by it.
func (s *state) setReclaimed(next *rqv1.RunStatus) {
	told, last := map[int]bool{}, rqv1.ClosureReason("")
	for index, pod := range s.pods {
		if !alive(pod) || !s.reclaims(pod) {
			continue
		}
		if lease := s.leases[pod.UID]; lease != nil {
			if _, said := s.saidReclaimed(lease); said {
				continue
			}
		}
		told[index] = true
		last, _ = s.Reclaimed(pod.UID)
	}
	if len(told) == 0 {
		return
	}
	for _, lease := range s.Leases {
		if reason, said := s.saidReclaimed(lease); said && reason == last {
			told[rank.Held(lease).Index] = true
		}
	}
	meta.RemoveStatusCondition(&next.Conditions, rqv1.ConditionReclaimed) // each time is one of its own
	s.setCondition(next, metav1.Condition{Type: rqv1.ConditionReclaimed, Status: metav1.ConditionTrue, Reason: string(last),
		Message: gaveWay(told) + needed(last), ObservedGeneration: s.Run.Generation})
}

// saidReclaimed returns why a shard was told to give way, by its Run's own status; false when that does not say that it was.
func (s *state) saidReclaimed(lease *rqv1.Lease) (rqv1.ClosureReason, bool) {
	c := meta.FindStatusCondition(s.Run.Status.Conditions, rqv1.ConditionReclaimed)
	if c == nil || lease.Spec.RunRef.UID != s.Run.UID || lease.Spec.Start.Truncate(time.Second).After(c.LastTransitionTime.Time) {
		return "", false
	}
	return rqv1.ClosureReason(c.Reason), slices.Contains(whoGaveWay(c.Message), strconv.Itoa(rank.Held(lease).Index))
}

const (
	beforeShards = "shards "
	afterShards  = " gave way: "
)

// gaveWay begins a message with the indexes of shards.
func gaveWay(shards map[int]bool) string {
	var out []string
	for _, index := range slices.Sorted(maps.Keys(shards)) {
		out = append(out, strconv.Itoa(index))
	}
	return beforeShards + strings.Join(out, ", ") + afterShards
}

// whoGaveWay reads them from it.
func whoGaveWay(message string) []string {
	list, _, _ := strings.Cut(message, afterShards)
	return strings.Split(strings.TrimPrefix(list, beforeShards), ", ")
}
