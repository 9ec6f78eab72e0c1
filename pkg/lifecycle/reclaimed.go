package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// givesWay reports whether any shard has been told to go and is there.
func (s *state) givesWay() bool {
	return slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool { return alive(pod) && s.reclaims(pod) })
}

// saidReclaimed returns why a shard was told to give way, by its Run's own status; false when that does not say that it was.
func (s *state) saidReclaimed(lease *rqv1.Lease) (rqv1.ClosureReason, bool) {
	if s.said == nil || lease.Spec.RunRef.UID != s.Run.UID || lease.Spec.Start.Truncate(time.Second).After(s.said.at) {
		return "", false
	}
	index := rank.Held(lease).Index
	return s.said.reason, slices.ContainsFunc(s.said.shards, func(r shardRange) bool { return r.first <= index && index <= r.last })
}

// toldShards are the shards that gave way last, by their Run's status, with the reason and the time.
type toldShards struct {
	reason rqv1.ClosureReason
	at     time.Time
	shards []shardRange
}

// shardRange is shards by their indexes, from the first to the last.
type shardRange struct{ first, last int }

const (
	beforeShards = "shards "
	afterShards  = " gave way: "
	someOf       = "some of "
	// longestList bounds what is said of shards one by one, in bytes: a Run may have a million, and an event holds 1024 bytes.
	longestList = 900
)

// gaveWay begins a message with the indexes of shards, as ranges. Of those at the end of too long a list it says some of a range,
// and who reads it takes all of that range for told.
func gaveWay(shards map[int]bool) string {
	var out []string
	indexes, length := slices.Sorted(maps.Keys(shards)), 0
	for begin, end := 0, 0; begin < len(indexes); begin = end {
		for end = begin + 1; end < len(indexes) && indexes[end] == indexes[end-1]+1; end++ {
		}
		next := shardRange{indexes[begin], indexes[end-1]}.String()
		if length += len(next) + len(", "); length > longestList {
			out = append(out, someOf+shardRange{indexes[begin], indexes[len(indexes)-1]}.String())
			break
		}
		out = append(out, next)
	}
	return beforeShards + strings.Join(out, ", ") + afterShards
}

// String returns the range as a message has it.
func (r shardRange) String() string {
	if r.first == r.last {
		return strconv.Itoa(r.first)
	}
	return fmt.Sprintf("%d-%d", r.first, r.last)
}

// whoGaveWay reads from a Run's status which shards gave way last; nil when it does not say.
func whoGaveWay(run *rqv1.Run) *toldShards {
	c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionReclaimed)
	if c == nil {
		return nil
	}
	told := &toldShards{reason: rqv1.ClosureReason(c.Reason), at: c.LastTransitionTime.Time}
	list, _, _ := strings.Cut(c.Message, afterShards)
	for text := range strings.SplitSeq(strings.TrimPrefix(list, beforeShards), ", ") {
		from, to, more := strings.Cut(strings.TrimPrefix(text, someOf), "-")
		if !more {
			to = from
		}
		first, err := strconv.Atoi(from)
		if last, errTo := strconv.Atoi(to); err == nil && errTo == nil {
			told.shards = append(told.shards, shardRange{first, last})
		}
	}
	return told
}
