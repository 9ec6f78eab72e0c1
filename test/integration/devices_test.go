package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// breaks has the kubelet of a pod that runs say how healthy a device of it is.
func (s *site) breaks(name string, health corev1.ResourceHealthStatus) (node string) {
	s.t.Helper()
	eventually(s.t, "the kubelet is to say how healthy a device is", func() error {
		pod := s.podsOf(s.runOf(name))[name]
		if pod.Status.Phase != corev1.PodRunning || len(pod.Status.ContainerStatuses) == 0 {
			return fmt.Errorf("pod %s is %s", name, pod.Status.Phase)
		}
		node = pod.Spec.NodeName
		pod.Status.ContainerStatuses[0].Name = pod.Spec.Containers[0].Name
		pod.Status.ContainerStatuses[0].AllocatedResourcesStatus = []corev1.ResourceStatus{{Name: "nvidia.com/gpu",
			Resources: []corev1.ResourceHealth{{ResourceID: "GPU-7", Health: health}}}}
		return s.api.Status().Update(s.t.Context(), &pod)
	})
	return node
}

// TestADeviceThatTurnsUnhealthy takes the rank that has it, and nobody else on its node.
func TestADeviceThatTurnsUnhealthy(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("other", 4, inPods(4))
	s.await("other", rqv1.RunRunning, "bound 4 GPUs")
	s.submit("train", 8, inPods(4), inGroups(8), withSpares(4))
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	before, others := s.podsOf("train"), s.podsOf("other")
	s.breaks("train-1", corev1.ResourceHealthStatusUnknown)
	node := s.breaks("train-0", corev1.ResourceHealthStatusUnhealthy)
	run := s.await("train", rqv1.RunRunning, "group 0 swapped to spare after node "+node+" ended a rank (Unhealthy)")
	after := s.podsOf("train")
	if on := after["train-0"].Spec.NodeName; on != before["train-s0"].Spec.NodeName {
		t.Errorf("the rank is on %q, want its spare's node %s", on, before["train-s0"].Spec.NodeName)
	}
	if after["train-1"].UID != before["train-1"].UID || s.podsOf("other")["other-0"].UID != others["other-0"].UID {
		t.Error("another pod was touched")
	}
	if len(run.Status.Deaths) != 1 || run.Status.Deaths[0].Message != "nvidia.com/gpu GPU-7" {
		t.Errorf("the Run tells of %+v", run.Status.Deaths)
	}
	want, closed := map[rqv1.ClosureReason]int{rqv1.ClosedEvicted: 1, rqv1.ClosedSwap: 1}, s.closures("train")
	delete(closed, "") // there is room for another spare
	if diff := cmp.Diff(want, closed); diff != "" {
		t.Errorf("Leases closed (-want +got):\n%s", diff)
	}
	s.uncordoned(node)
	s.settled()
}
