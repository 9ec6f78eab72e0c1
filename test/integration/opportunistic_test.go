package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// opportunistic makes a Run one of shards.
func opportunistic(r *rqv1.Run) { r.Spec.Opportunistic = true }

// strike takes a node out of service.
func (s *site) strike(node string) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown",
			Effect: corev1.TaintEffectNoExecute})
	})
}

// shards waits until so many shards of a Run are bound, and returns how many are on each node.
func (s *site) shards(run string, count int) map[string]int {
	s.t.Helper()
	var on map[string]int
	eventually(s.t, fmt.Sprintf("%d shards of Run %s", count, run), func() error {
		on = map[string]int{}
		bound := 0
		for _, pod := range s.podsOf(run) {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
				on[strings.TrimPrefix(pod.Spec.NodeName, s.namespace+"-")]++
				bound++
			}
		}
		r, err := s.get(run)
		if err != nil {
			return err
		}
		if bound != count || r.Status.Width == nil || int(r.Status.Width.Allocated) != 2*count {
			return fmt.Errorf("%d are: %s, %+v", bound, r.Status.Message, r.Status.Width)
		}
		return nil
	})
	return on
}

// borrowed is an error unless the Leases of a Run's shards were closed for these reasons.
func (s *site) borrowed(run string, want map[rqv1.ClosureReason]int) error {
	got := map[rqv1.ClosureReason]int{}
	for _, lease := range s.leasesOf(run) {
		if lease.Spec.Slice.Role != rqv1.RoleBorrowed {
			return fmt.Errorf("Lease %s has the role %s", lease.Name, lease.Spec.Slice.Role)
		}
		got[lease.Status.ClosureReason]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("Leases by reason of their end: %v, want %v", got, want)
	}
	return nil
}

// TestOpportunisticFillAndSwap is worked example 3: shards run on the idle node and on the one of the spare; when a
// node of J1 fails, those on the spare's give way to it.
func TestOpportunisticFillAndSwap(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("a", 18, 4)
	s.fund("alpha", s.envelope("all", 68))
	s.fund("beta", s.envelope("all", 1))
	s.submit("j1", 64, s.by("alpha"), inPods(4), inGroups(64), withSpares(4))
	s.await("j1", rqv1.RunRunning, "bound 64 GPUs")
	before := s.podsOf("j1")
	spare := strings.TrimPrefix(before["j1-s0"].Spec.NodeName, s.namespace+"-")

	s.submit("j2", 16, s.by("beta"), inPods(2), opportunistic)
	on := s.shards("j2", 4)
	if on[spare] != 2 || len(on) != 2 {
		t.Errorf("shards are on %v, want two on the spare's node %s and two on another", on, spare)
	}
	s.await("j2", rqv1.RunRunning, "4 of 8 shards run; the others wait: no idle GPUs fit a shard")
	s.settled()

	failed := before["j1-3"].Spec.NodeName
	s.strike(failed)
	s.await("j1", rqv1.RunRunning, swappedMessage)
	after := s.shards("j2", 2)
	delete(on, spare)
	same(t, "where shards run", on, after)
	w := s.settled()
	if node := s.podsOf("j1")["j1-3"].Spec.NodeName; node != s.namespace+"-"+spare {
		t.Errorf("rank 3 is on %s, want the spare's node %s", node, spare)
	}
	eventually(t, "why the shards ended", func() error {
		return s.borrowed("j2", map[rqv1.ClosureReason]int{"": 2, rqv1.ClosedReclaimedBySpare: 2})
	})
	run, err := s.get("j2")
	if err != nil {
		t.Fatal(err)
	}
	if told := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionReclaimed); told == nil ||
		told.Reason != string(rqv1.ClosedReclaimedBySpare) {
		t.Errorf("the Run does not tell why its shards gave way: %+v", told)
	}
	eventually(t, "J1's Leases", func() error {
		reasons := map[string]int{}
		for _, lease := range s.leasesOf("j1") {
			reasons[fmt.Sprint(lease.Spec.Slice.Role, " ", lease.Spec.Reason, " ", lease.Status.ClosureReason)]++
		}
		if diff := cmp.Diff(map[string]int{
			"Active Start ": 15, "Active Start NodeFailure": 1, "Spare Start Swap": 1, "Active Swap ": 1, "Spare Start ": 1,
		}, reasons); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	if node := w.nodes[failed]; !node.Spec.Unschedulable {
		t.Errorf("node %s is not cordoned", failed)
	}
}

// TestShardsGiveWay has a normal Run fit only where shards run: the youngest go, and no more than it takes. They come
// back when it has ended.
func TestShardsGiveWay(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 100)
	s.submit("sweep", 24, inPods(2), opportunistic)
	s.shards("sweep", 12)
	s.await("sweep", rqv1.RunRunning, "12 of 12 shards run")
	s.submit("train", 10, inPods(2))
	s.await("train", rqv1.RunRunning, "bound 10 GPUs")
	s.shards("sweep", 7)
	s.settled()
	eventually(t, "why the shards ended", func() error {
		return s.borrowed("sweep", map[rqv1.ClosureReason]int{"": 7, rqv1.ClosedReclaimed: 5})
	})
	s.removeRun("train")
	s.shards("sweep", 12)
	s.settled()
}

// TestShardsAreLeftAloneWhereThereIsOtherRoom starts a Run beside shards.
func TestShardsAreLeftAloneWhereThereIsOtherRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	s.submit("sweep", 4, inPods(2), opportunistic)
	on := s.shards("sweep", 2)
	s.submit("train", 8, inPods(8))
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	s.settled()
	same(t, "where shards run", on, s.shards("sweep", 2))
	if err := s.borrowed("sweep", map[rqv1.ClosureReason]int{"": 2}); err != nil {
		t.Error(err)
	}
}

// TestShardsWithTheirNode loses a node that hosts shards alone: they run elsewhere, and nobody is hurt.
func TestShardsWithTheirNode(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	s.submit("sweep", 8, inPods(2), opportunistic)
	on := s.shards("sweep", 4)
	nodes := slices.Sorted(func(yield func(string) bool) {
		for node := range on {
			if !yield(node) {
				return
			}
		}
	})
	s.strike(s.namespace + "-" + nodes[0])
	eventually(t, "the shards' Leases", func() error {
		return s.borrowed("sweep", map[rqv1.ClosureReason]int{"": 4, rqv1.ClosedNodeFailure: on[nodes[0]]})
	})
	if again := s.shards("sweep", 4); again[nodes[0]] > 0 {
		t.Errorf("shards are on %v", again)
	}
	s.settled()
}

// TestShardsEnd has shards complete one by one: those that have ended well do not run again, and the Run completes with
// the last.
func TestShardsEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 0)
	s.submit("sweep", 16, s.by("nobody"), inPods(2), opportunistic, annotated("pod-complete.stage.kwok.x-k8s.io/delay",
		"1s"))
	s.await("sweep", rqv1.RunPending, "0 of 8 shards run; the others wait: no Budget of owner ")
	s.fund("nobody", s.envelope("all", 1))
	s.await("sweep", rqv1.RunCompleted, "all 8 pods completed")
	s.settled()
	if err := s.borrowed("sweep", map[rqv1.ClosureReason]int{rqv1.ClosedCompleted: 8}); err != nil {
		t.Error(err)
	}
}

// TestFewerShards has a Run of shards desire fewer: the highest go at once.
func TestFewerShards(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 100)
	s.submit("sweep", 8, malleable(2, 8, 2), opportunistic)
	s.shards("sweep", 4)
	s.runs("shrink sweep --to 4 -n " + s.namespace)
	s.shards("sweep", 2)
	eventually(t, "the shards' Leases", func() error {
		return s.borrowed("sweep", map[rqv1.ClosureReason]int{"": 2, rqv1.ClosedShrink: 2})
	})
	s.settled()
	var run rqv1.Run
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep"}, &run); err != nil {
		t.Fatal(err)
	}
	same(t, "its width", rqv1.RunWidth{Max: 8, Desired: 4, Allocated: 4}, *run.Status.Width)
}
