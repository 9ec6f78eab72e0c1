package explain

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// TestWhatARunHasUsed: of one that holds nothing any more it is told where it was.
func TestWhatARunHasUsed(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	held := func(node string, hours int) rqv1.Lease {
		lease := rqv1.Lease{Spec: rqv1.LeaseSpec{Start: metav1.NewMicroTime(start), Payer: rqv1.LeasePayer{Rate: "1"},
			Slice: rqv1.LeaseSlice{Nodes: []rqv1.NodeGPUs{{Name: node, GPUs: 8}}}}}
		if hours > 0 {
			lease.Status.Closed = true
			lease.Status.Ended = &metav1.MicroTime{Time: start.Add(time.Duration(hours) * time.Hour)}
		}
		return lease
	}
	for name, c := range map[string]struct {
		leases []rqv1.Lease
		want   string
	}{
		"nothing":      {nil, "nothing"},
		"it holds one": {[]rqv1.Lease{held("n1", 1), held("n0", 0)}, "32.00 GPU-hours in 3h0m0s on []"},
		"it has ended": {[]rqv1.Lease{held("n1", 1), held("n0", 2), held("n1", 2)}, "40.00 GPU-hours in 2h0m0s on [n0 n1]"},
	} {
		got := "nothing"
		if u := usedBy(c.leases, start.Add(3*time.Hour)); u != nil {
			elapsed := time.Duration(u.ElapsedSeconds) * time.Second
			got = fmt.Sprintf("%s GPU-hours in %s on %v", view.Short(u.GPUHours), elapsed, u.Nodes)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
