package book_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// closedLease is one of many that ended within the last days, of Runs that are long gone, as a process reads them that
// begins.
func closedLease(i int, reason rqv1.ClosureReason, now time.Time) *rqv1.Lease {
	ended := metav1.NewMicroTime(now.Add(-time.Duration(i) * time.Second))
	pod := fmt.Sprintf("%08d-aaaa-bbbb-cccc-%012d", i, i)
	return &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-of-some-name", Name: fmt.Sprintf("train-%d-0-%08d", i, i),
			Labels:      map[string]string{rqv1.LabelPodUID: pod},
			Annotations: map[string]string{"padding": fmt.Sprintf("%0512d", i)}},
		Spec: rqv1.LeaseSpec{Owner: "org:a",
			RunRef: rqv1.LeaseRunRef{Namespace: "team-of-some-name", Name: fmt.Sprint("train-", i), UID: types.UID(pod)},
			Payer:  rqv1.LeasePayer{Budget: fmt.Sprint("b", i%50), Owner: "org:a"}, PaidByEnvelope: "e",
			Start: metav1.NewMicroTime(ended.Add(-time.Hour)),
			Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: nodeName(i % 5000), GPUs: 8}}}},
		Status: rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: reason},
	}
}

// A process that begins beside many closed Leases keeps next to nothing of each, and holds the book for none of them
// longer than for another: a million are 200 MB.
func TestAClosedLeaseCostsLittle(t *testing.T) {
	const n, most = 100_000, 200 // bytes
	for _, reason := range []rqv1.ClosureReason{rqv1.ClosedCompleted, rqv1.ClosedUnwound} {
		args, err := config.Parse(nil)
		if err != nil {
			t.Fatal(err)
		}
		b, now := book.New(args), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		holds := 0
		b.WatchHolds(func() func() { holds++; return func() {} })
		b.Reads(now)
		before := heap()
		for i := range n {
			b.SetLease(closedLease(i, reason, now))
		}
		if each := int(heap()-before) / n; each > most {
			t.Errorf("%s: %d bytes are kept of each closed Lease, want at most %d", reason, each, most)
		}
		if holds < n {
			t.Errorf("%s: %d Leases are told in %d holds of the book", reason, n, holds)
		}
		b.Begin(now)
		runtime.KeepAlive(b)
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
