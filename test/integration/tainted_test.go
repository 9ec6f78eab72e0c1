package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestATaintComesToManyNodes has somebody taint all nodes of a Run with effect NoExecute, as before a row of racks is
// switched off: more of its ranks are evicted than a status tells of. Each of them is lost by its node's doing and goes
// to another node, and the Run goes on.
func TestATaintComesToManyNodes(t *testing.T) {
	t.Parallel()
	const ranks = rqv1.MostDeaths + 4
	s := newSite(t, liveCluster(t), 1, 2*ranks, 8*ranks)
	s.submit("train", 8*ranks, inPods(8))
	s.await("train", rqv1.RunRunning, fmt.Sprintf("bound %d GPUs", 8*ranks))
	tainted := map[string]bool{}
	for _, pod := range s.podsOf("train") {
		tainted[pod.Spec.NodeName] = true
	}
	for node := range tainted {
		edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/outage", Value: "row-7",
				Effect: corev1.TaintEffectNoExecute})
		})
	}
	want := map[rqv1.ClosureReason]int{rqv1.ClosedEvicted: ranks, "": ranks}
	eventually(t, "all ranks are to be on other nodes", func() error {
		if diff := cmp.Diff(want, s.closures("train")); diff != "" {
			return fmt.Errorf("Leases closed (-want +got):\n%s", diff)
		}
		moved := 0
		for name, pod := range s.podsOf("train") {
			if tainted[pod.Spec.NodeName] {
				return fmt.Errorf("pod %s is on node %s still", name, pod.Spec.NodeName)
			}
			if pod.Spec.NodeName != "" {
				moved++
			}
		}
		if moved != ranks {
			return fmt.Errorf("%d of %d ranks are", moved, ranks)
		}
		return nil
	})
	for _, lease := range s.leasesOf("train") {
		if lease.Status.Closed && lease.Status.Cause != rqv1.CauseNode {
			t.Errorf("Lease %s has closed by the doing of %s", lease.Name, lease.Status.Cause)
		}
	}
	run, err := s.get("train")
	if err != nil || run.Status.Phase != rqv1.RunRunning {
		t.Errorf("the Run is %s (%s): %v", run.Status.Phase, run.Status.Message, err)
	}
	for node := range tainted {
		s.uncordoned(node)
	}
	s.settled()
}
