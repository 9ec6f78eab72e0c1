package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ends has a pod of a Run that runs end as its kubelet tells it.
func (s *site) ends(name string, as corev1.PodStatus) (node string) {
	s.t.Helper()
	eventually(s.t, "the kubelet is to say how the pod ended", func() error {
		pod := &corev1.Pod{}
		if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s is %s: its kubelet would write over what is said", name, pod.Status.Phase)
		}
		node = pod.Spec.NodeName
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, as.Reason, as.Message
		pod.Status.Conditions = append(pod.Status.Conditions, as.Conditions...)
		if as.ContainerStatuses != nil {
			pod.Status.ContainerStatuses = as.ContainerStatuses
		}
		return s.api.Status().Update(s.t.Context(), pod)
	})
	return node
}

// disruptedBy is the status of a pod that somebody has ended for the node's sake.
func disruptedBy(who, reason string) corev1.PodStatus {
	return corev1.PodStatus{Reason: reason, Message: "so the kubelet says", Conditions: []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: who, LastTransitionTime: metav1.Now()}}}
}

// TestRanksThatTheirNodesEnd has nodes end a rank in all ways in which kubelets tell it. Its spare takes its place, and
// the Run goes on: no node is lost, and nobody cordons one.
func TestRanksThatTheirNodesEnd(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]corev1.PodStatus{
		"graceful-shutdown": disruptedBy("TerminationByKubelet", "Terminated"),
		"pressure":          disruptedBy("TerminationByKubelet", "Evicted"),
		"shutting-down":     {Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."},
		"devices":           {Reason: "OutOfnvidia.com/gpu", Message: "Node didn't have enough resource"},
		"plugin":            {Reason: "UnexpectedAdmissionError", Message: "Allocate failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 1, 4, 100)
			s.submit("train", 16, inPods(8), inGroups(16), withSpares(8))
			s.await("train", rqv1.RunRunning, "bound 16 GPUs")
			before := s.podsOf("train")
			node := s.ends("train-0", as)
			run := s.await("train", rqv1.RunRunning, "group 0 swapped to spare after node "+node+" ended a rank")
			after := s.podsOf("train")
			if on := after["train-0"].Spec.NodeName; on != before["train-s0"].Spec.NodeName {
				t.Errorf("the rank is on %q, want its spare's node %s", on, before["train-s0"].Spec.NodeName)
			}
			if after["train-1"].UID != before["train-1"].UID {
				t.Error("the other rank was touched")
			}
			if len(run.Status.Deaths) != 1 || run.Status.Deaths[0].Cause != rqv1.CauseNode || run.Status.Deaths[0].Node != node {
				t.Errorf("the Run tells of %+v, want rank 0 ended by node %s", run.Status.Deaths, node)
			}
			want := map[rqv1.ClosureReason]int{rqv1.ClosedEvicted: 1, rqv1.ClosedSwap: 1, "": 3}
			if diff := cmp.Diff(want, s.closures("train")); diff != "" {
				t.Errorf("Leases closed (-want +got):\n%s", diff)
			}
			s.uncordoned(node)
			s.settled()
		})
	}
}

// uncordoned asserts that nobody has cordoned a node.
func (s *site) uncordoned(name string) {
	s.t.Helper()
	node := &corev1.Node{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Name: name}, node); err != nil || node.Spec.Unschedulable {
		s.t.Errorf("node %s is cordoned: %v (%v)", name, node.Spec.Unschedulable, err)
	}
}

// TestABadNodeOfManyAtTheStart has one node turn away what is bound to it, as it says that it has more devices than it
// has. The gang starts without it.
func TestABadNodeOfManyAtTheStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("train", 24, inPods(8))
	bad := ""
	eventually(t, "a rank is to be bound", func() error {
		for name, pod := range s.podsOf("train") {
			if pod.Spec.NodeName != "" {
				bad = s.ends(name, corev1.PodStatus{Reason: "OutOfnvidia.com/gpu"})
				return nil
			}
		}
		return fmt.Errorf("none is")
	})
	eventually(t, "the Run is to run on other nodes", func() error {
		run, err := s.get("train")
		if err != nil || run.Status.Phase != rqv1.RunRunning || run.Status.Width.Allocated != 24 {
			return fmt.Errorf("it is %s (%s): %w", run.Status.Phase, run.Status.Message, err)
		}
		var on []string
		for _, pod := range s.podsOf("train") {
			on = append(on, pod.Spec.NodeName)
		}
		if slices.Contains(on, bad) || len(on) != 3 {
			return fmt.Errorf("it is on %v, want 3 nodes without %s", on, bad)
		}
		return nil
	})
	s.settled()
}

// TestARankThatNoNodeKeeps is turned away by three nodes: the Run says so, and takes no more of them.
func TestARankThatNoNodeKeeps(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 5, 100)
	s.submit("train", 8, inPods(8), checkpoint(time.Hour))
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	seen := map[string]bool{}
	for range 3 {
		eventually(t, "the rank is to be on a node where it was not", func() error {
			if on := s.podsOf("train")["train-0"].Spec.NodeName; on == "" || seen[on] {
				return fmt.Errorf("it is on %q", on)
			}
			return nil
		})
		seen[s.ends("train-0", corev1.PodStatus{Reason: "UnexpectedAdmissionError", Message: "no such device"})] = true
	}
	s.await("train", rqv1.RunFailed, "rank 0 was ended or rejected by 3 nodes within 1h0m0s")
	s.settled()
}
