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

// toldShards are the shards that gave way last, by their Run's status, with the time and, for each, the reason.
type toldShards struct {
	at     time.Time
	shards map[rqv1.ClosureReason][]shardRange
}

// reasonsToGiveWay are those of shards, in the order in which a status tells of them.
var reasonsToGiveWay = []rqv1.ClosureReason{rqv1.ClosedReclaimed, rqv1.ClosedReclaimedBySpare,
	rqv1.ClosedReclaimedQuota, rqv1.ClosedMaintenance}

// shardRange is shards by their indexes, from the first to the last.
type shardRange struct{ first, last int }

const (
	beforeShards  = "shards "
	afterShards   = " gave way: "
	betweenShards = "; "
	someOf        = "some of "
	// longestList bounds what is said of shards one by one, for one reason or for all, in bytes: a Run may have a million,
	// and an event holds 1024 bytes.
	longestList = 800
)

// needed says why shards give way.
func needed(reason rqv1.ClosureReason) string {
	switch reason {
	case rqv1.ClosedReclaimedBySpare:
		return "the spare on these GPUs is needed in place of a failed node"
	case rqv1.ClosedReclaimedQuota:
		return "a Run of the namespace that pays needs its quota"
	case rqv1.ClosedMaintenance:
		return "maintenance of the node is about to start"
	}
	return "another Run has been given these GPUs"
}

// gaveWay says which shards, by their indexes, gave way for which reason.
func gaveWay(shards map[int]rqv1.ClosureReason) string {
	indexes := map[rqv1.ClosureReason][]int{}
	for _, index := range slices.Sorted(maps.Keys(shards)) {
		indexes[shards[index]] = append(indexes[shards[index]], index)
	}
	var out []string
	for _, reason := range reasonsToGiveWay {
		if list := indexes[reason]; len(list) > 0 {
			out = append(out, beforeShards+listed(list, longestList/len(indexes))+afterShards+needed(reason))
		}
	}
	return strings.Join(out, betweenShards)
}

// listed returns indexes as ranges, in so many bytes and a few. Of those at the end of too long a list it says some of
// a range, and who reads it takes all of that range for told.
func listed(indexes []int, most int) string {
	var out []string
	length := 0
	for begin, end := 0, 0; begin < len(indexes); begin = end {
		for end = begin + 1; end < len(indexes) && indexes[end] == indexes[end-1]+1; end++ {
		}
		next := shardRange{indexes[begin], indexes[end-1]}.text()
		length += len(next) + len(", ")
		if length > most {
			out = append(out, someOf+shardRange{indexes[begin], indexes[len(indexes)-1]}.text())
			break
		}
		out = append(out, next)
	}
	return strings.Join(out, ", ")
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
	told := &toldShards{at: c.LastTransitionTime.Time, shards: map[rqv1.ClosureReason][]shardRange{}}
	for part := range strings.SplitSeq(c.Message, betweenShards) {
		list, why, _ := strings.Cut(part, afterShards)
		for _, reason := range reasonsToGiveWay {
			if why == needed(reason) {
				told.shards[reason] = rangesIn(strings.TrimPrefix(list, beforeShards))
			}
		}
	}
	return told
}

// rangesIn reads a list of shards; what is none it leaves out.
func rangesIn(list string) []shardRange {
	var out []shardRange
	for text := range strings.SplitSeq(list, ", ") {
		from, to, more := strings.Cut(strings.TrimPrefix(text, someOf), "-")
		if !more {
			to = from
		}
		first, err := strconv.Atoi(from)
		if last, errTo := strconv.Atoi(to); err == nil && errTo == nil {
			out = append(out, shardRange{first, last})
		}
	}
	return out
}

// reasonFor returns why the shard that held a Lease was told to give way; false when the status does not say that it
// was.
func (t *toldShards) reasonFor(run *rqv1.Run, lease *rqv1.Lease) (rqv1.ClosureReason, bool) {
	if lease.Spec.RunRef.UID != run.UID {
		return "", false
	}
	return t.says(rank.Held(lease).Index, lease.HeldSince())
}

// says returns why a shard that began at an instant was told to give way; false when it was not.
func (t *toldShards) says(index int, since time.Time) (rqv1.ClosureReason, bool) {
	if t == nil || since.Truncate(time.Second).After(t.at) {
		return "", false
	}
	for _, reason := range reasonsToGiveWay {
		if slices.ContainsFunc(t.shards[reason], func(r shardRange) bool { return r.first <= index && index <= r.last }) {
			return reason, true
		}
	}
	return "", false
}
