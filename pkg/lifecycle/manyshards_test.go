package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// largeSweep is an opportunistic Run of many shards that run, of which some have been told to go.
func largeSweep(n int, told func(index int) bool) Observed {
	var uids []types.UID
	for i := range n {
		if told(i) {
			uids = append(uids, types.UID(fmt.Sprintf("%08d", i)))
		}
	}
	o := sweep(rqv1.ClosedReclaimed, uids...)
	pod, lease := o.Pods[0], o.Leases[0]
	o.Pods, o.Leases = nil, nil
	o.Demand.Groups, o.Demand.PodsPerGroup, o.Demand.Confined = n, 1, false
	for i := range n {
		p, l, uid := pod.DeepCopy(), lease.DeepCopy(), types.UID(fmt.Sprintf("%08d", i))
		p.Name, p.UID, p.Labels[rqv1.LabelIndex] = fmt.Sprintf("%s-%d", o.Run.Name, i), uid, strconv.Itoa(i)
		l.Name, l.Labels[rqv1.LabelPodUID], l.Labels[rqv1.LabelIndex] = fmt.Sprintf("lease-%d", i), string(uid),
			strconv.Itoa(i)
		o.Pods, o.Leases = append(o.Pods, p), append(o.Leases, l)
	}
	return o
}

// TestManyShardsGiveWayAtOnce has the status say so in a message that the API and an event have room for, and whoever
// takes over close all their Leases by it.
func TestManyShardsGiveWayAtOnce(t *testing.T) {
	const n = 3000
	for name, test := range map[string]struct {
		told  func(index int) bool
		begin string
	}{
		"all but the first": {func(i int) bool { return i > 0 }, "shards 1-2999 gave way: "},
		"two ranges and one": {func(i int) bool { return i < 2000 || i == 2345 || i >= 2998 },
			"shards 0-1999, 2345, 2998-2999 gave way: "},
		"every other": {func(i int) bool { return i%2 == 0 }, "shards 0, 2, 4, 6, 8, 10, 12, "},
	} {
		o := largeSweep(n, test.told)
		want := 0
		for i := range n {
			if test.told(i) {
				want++
			}
		}
		d := Decide(o)
		if len(d.Delete) != want || !d.TellFirst() {
			t.Fatalf("%s: %d shards go, want %d, told first: %v", name, len(d.Delete), want, d.TellFirst())
		}
		message := meta.FindStatusCondition(d.Status.Conditions, rqv1.ConditionReclaimed).Message
		if len(message) > 1024 || !strings.HasPrefix(message, test.begin) {
			t.Errorf("%s: the message has %d bytes and is %q", name, len(message), message)
		}
		o.dies()
		d = Decide(o)
		for _, closing := range d.Close {
			if closing.Reason != rqv1.ClosedReclaimed {
				t.Fatalf("%s: %s is closed as %s", name, closing.Lease.Name, closing.Reason)
			}
		}
		if len(d.Close) != want {
			t.Errorf("%s: %d Leases are closed, want %d", name, len(d.Close), want)
		}
	}
}
