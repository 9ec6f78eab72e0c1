package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// withSpares has so many GPUs stand by in each group.
func withSpares(gpus int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.SparesPerGroup = &gpus }
}

// nodesByRole are the nodes of a Run's open Leases, by role and domain.
func (s *site) nodesByRole(run string) map[rqv1.LeaseRole]map[string]int32 {
	s.t.Helper()
	out := map[rqv1.LeaseRole]map[string]int32{}
	for _, lease := range s.leasesOf(run) {
		if lease.Status.Closed {
			continue
		}
		role := lease.Spec.Slice.Role
		if out[role] == nil {
			out[role] = map[string]int32{}
		}
		out[role][lease.Node()] += lease.Spec.Slice.Nodes[0].GPUs
	}
	return out
}

// TestSpares starts a Run with a spare node in each group's domain, loses a spare, and completes: the Run goes on
// without it, another takes its place, and all that was held is given back.
func TestSpares(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 2, 5, 80)
	s.submit("guarded", 64, inGroups(32), withSpares(8), func(r *rqv1.Run) { template(r) })
	run := s.await("guarded", rqv1.RunRunning, "bound 64 GPUs")
	if diff := cmp.Diff(&rqv1.RunWidth{Min: 64, Max: 64, Desired: 64, Granted: 64, Allocated: 64},
		run.Status.Width); diff != "" {
		t.Error(diff)
	}
	s.settled()
	byRole := s.nodesByRole("guarded")
	if active, spare := byRole[rqv1.RoleActive], byRole[rqv1.RoleSpare]; len(active) != 8 || len(spare) != 2 {
		t.Errorf("active pods on %v, spares on %v; want 8 nodes and 2 others", active, spare)
	}
	for node := range byRole[rqv1.RoleSpare] {
		if byRole[rqv1.RoleActive][node] > 0 {
			t.Errorf("node %s has a spare and active pods", node)
		}
	}

	lost := s.podsOf("guarded")["guarded-s1"]
	s.delete(&lost)
	eventually(t, "the spare is to be replaced", func() error {
		run, err := s.get("guarded")
		if err == nil {
			err = is(run, rqv1.RunRunning, "bound 64 GPUs")
		}
		if err != nil {
			t.Fatalf("the Run does not go on without a spare: %v", err)
		}
		if pod := s.podsOf("guarded")["guarded-s1"]; pod.UID == lost.UID || pod.Spec.NodeName == "" {
			return fmt.Errorf("pod %s is on %q", pod.UID, pod.Spec.NodeName)
		}
		return nil
	})
	s.settled()
	if diff := cmp.Diff(byRole, s.nodesByRole("guarded")); diff != "" {
		t.Errorf("the replacement is not where the spare was: %s", diff)
	}

	s.succeed("guarded")
	s.await("guarded", rqv1.RunCompleted, "all 8 pods completed")
	s.settled()
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedCompleted: 10, rqv1.ClosedDeleted: 1},
		s.closures("guarded")); diff != "" {
		t.Error(diff)
	}
	for name, pod := range s.podsOf("guarded") {
		if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) {
			t.Errorf("spare pod %s is left", name)
		}
	}
}

// succeed has every active pod of a Run end well.
func (s *site) succeed(run string) {
	s.t.Helper()
	end := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"pod-complete.stage.kwok.x-k8s.io/delay":"0s"}}}`))
	for _, pod := range s.podsOf(run) {
		if pod.Labels[rqv1.LabelRole] != string(rqv1.RoleActive) {
			continue
		}
		if err := s.api.Patch(s.t.Context(), &pod, end); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestSparesNeedRoomAndMoney submits Runs that would fit without their spares: they wait whole.
func TestSparesNeedRoomAndMoney(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		nodes   int
		budget  int32
		message string
	}{
		"no room":  {2, 100, "short by 8"},
		"no money": {3, 16, "short by 8 of 24 GPUs"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 1, c.nodes, c.budget)
			s.submit("guarded", 16, inPods(8), withSpares(8))
			s.await("guarded", rqv1.RunPending, c.message)
			if err := s.holdsNothing("guarded"); err != nil {
				t.Error(err)
			}
			s.submit("plain", 16, inPods(8))
			s.await("plain", rqv1.RunRunning, "bound 16 GPUs")
			s.settled()
		})
	}
}

// TestSpareOnALostNode deletes a spare's node: the Run goes on, and its spare comes back with the node.
func TestSpareOnALostNode(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 24)
	s.submit("guarded", 16, inPods(8), withSpares(8))
	s.await("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.settled()
	node := &corev1.Node{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: s.podsOf("guarded")["guarded-s0"].Spec.NodeName},
		node); err != nil {
		t.Fatal(err)
	}
	s.delete(node)
	eventually(t, "the spare is to be gone from the lost node", func() error {
		if pod := s.podsOf("guarded")["guarded-s0"]; pod.Name == "" || pod.Spec.NodeName != "" {
			return fmt.Errorf("pod %s is on %q", pod.UID, pod.Spec.NodeName)
		}
		return s.verdict(t.Context())
	})
	s.await("guarded", rqv1.RunRunning, "bound 16 GPUs")
	node.ObjectMeta.ResourceVersion, node.ObjectMeta.UID = "", ""
	s.load(*node)
	eventually(t, "the spare is to be back", func() error {
		if pod := s.podsOf("guarded")["guarded-s0"]; pod.Spec.NodeName != node.Name {
			return fmt.Errorf("it is on %q", pod.Spec.NodeName)
		}
		return nil
	})
	s.await("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.settled()
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{"": 3, rqv1.ClosedNodeFailure: 1}, s.closures("guarded")); diff != "" {
		t.Error(diff)
	}
}
