package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

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
	// longestList bounds what is said of shards one by one, in bytes: a Run may have a million, and an event holds 1024
	// bytes.
	longestList = 900
)

// needed says why shards give way.
func needed(reason rqv1.ClosureReason) string {
	if reason == rqv1.ClosedReclaimedBySpare {
		return "the spare on these GPUs is needed in place of a failed node"
	}
	return "another Run has been given these GPUs"
}

// gaveWay begins a message with the indexes of shards, as ranges. Of those at the end of too long a list it says some
// of a range, and who reads it takes all of that range for told.
func gaveWay(shards map[int]bool) string {
	var out []string
	indexes, length := slices.Sorted(maps.Keys(shards)), 0
	for begin, end := 0, 0; begin < len(indexes); begin = end {
		for end = begin + 1; end < len(indexes) && indexes[end] == indexes[end-1]+1; end++ {
		}
		next := shardRange{indexes[begin], indexes[end-1]}.text()
		length += len(next) + len(", ")
		if length > longestList {
			out = append(out, someOf+shardRange{indexes[begin], indexes[len(indexes)-1]}.text())
			break
		}
		out = append(out, next)
	}
	return beforeShards + strings.Join(out, ", ") + afterShards
}

// text returns the range as a message has it.
func (r shardRange) text() string {
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

// reasonFor returns why the shard that held a Lease was told to give way; false when the status does not say that it
// was.
func (t *toldShards) reasonFor(run *rqv1.Run, lease *rqv1.Lease) (rqv1.ClosureReason, bool) {
	if lease.Spec.RunRef.UID != run.UID || !t.says(rank.Held(lease).Index, lease.Spec.Start.Time) {
		return "", false
	}
	return t.reason, true
}

// says reports whether a shard that began at an instant was told to give way.
func (t *toldShards) says(index int, since time.Time) bool {
	return t != nil && !since.Truncate(time.Second).After(t.at) &&
		slices.ContainsFunc(t.shards, func(r shardRange) bool { return r.first <= index && index <= r.last })
}
