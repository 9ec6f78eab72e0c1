package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/story"
)

// fellOff is a condition of NVSentinel's, which counts without any configuration.
const fellOff = "SysLogsGPUFallenOff"

// says has a checker set a condition of a node.
func (s *site) says(node, condition string, status corev1.ConditionStatus) {
	s.t.Helper()
	eventually(s.t, "setting a condition", func() error {
		_, err := s.kube.CoreV1().Nodes().Patch(s.t.Context(), node, types.StrategicMergePatchType,
			fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q,"reason":"XID","message":"XID 79"}]}}`, condition,
				status), metav1.PatchOptions{FieldManager: "platform-connectors"}, "status")
		return err
	})
}

// isLost is an error unless a node is still recorded as lost, and cordoned.
func (s *site) isLost(name string) error {
	node := &corev1.Node{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	if record := node.Annotations[rqv1.AnnotationLost]; !node.Spec.Unschedulable || record == "" {
		return fmt.Errorf("it is cordoned: %v, and its record is %q", node.Spec.Unschedulable, record)
	}
	return nil
}

// isBack is an error unless nothing tells any more that a node was lost.
func (s *site) isBack(name string) error {
	node := &corev1.Node{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	return story.Unrecorded(node)
}

// brokenUnder starts a Run with a spare on a site of four nodes, has the node of one of its ranks break, by what strike
// does, and returns the node once the rank and the spare are elsewhere: a Run that needs a node has to wait for it.
func (s *site) brokenUnder(strike func(node string)) string {
	s.t.Helper()
	before := s.guarded()
	lost := before["guarded-1"].Spec.NodeName
	strike(lost)
	s.swapped(before, "guarded-1")
	eventually(s.t, "the node's record", func() error { return s.marked(lost, "condition "+fellOff+" is True") })
	eventually(s.t, "the spare is to be elsewhere", func() error {
		if on := s.podsOf("guarded")["guarded-s0"].Spec.NodeName; on == "" || on == lost {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	s.submit("next", 8, inPods(8))
	s.await("next", rqv1.RunPending, "short by")
	return lost
}

// awaitUsed waits until the Run that waits for a node runs there.
func (s *site) awaitUsed(node string) {
	s.t.Helper()
	s.await("next", rqv1.RunRunning, "bound 8 GPUs")
	if on := s.podsOf("next")["next-0"].Spec.NodeName; on != node {
		s.t.Errorf("the Run that waited is on %s, want %s", on, node)
	}
	eventually(s.t, "the node is to be as any other", func() error { return s.isBack(node) })
	s.settled()
}

// staysLost asserts that nothing is done about a node for longer than a sign has to be gone.
func (s *site) staysLost(node string) {
	s.t.Helper()
	throughout(s.t, 8*time.Second, "the node is somebody else's", func() error { return s.isLost(node) })
}

// TestANodeIsBackWhenItsSignIsGone has nobody but the scheduler cordon a node: it is used again without anybody's help,
// also if the scheduler is killed as soon as it has recorded the loss, and again when the sign is gone. A cordon of
// somebody else's stays. What becomes of the node is told on it.
func TestANodeIsBackWhenItsSignIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, nil), 1, 4, 100)
	s.startScheduler()
	node := s.brokenUnder(func(node string) {
		s.says(node, fellOff, corev1.ConditionTrue)
		eventually(t, "the node's record", func() error { return s.isLost(node) })
		s.killed()
		s.startScheduler()
	})
	s.staysLost(node)
	s.killed()
	s.says(node, fellOff, corev1.ConditionFalse)
	s.startScheduler()
	s.killAfter(5 * time.Second) // about when the node is to be given back
	s.awaitUsed(node)
	s.cordonedAnew(node)

	s.submit("last", 8, inPods(8))
	s.await("last", rqv1.RunRunning, "bound 8 GPUs")
	s.says(node, fellOff, corev1.ConditionTrue)
	s.awaitEvent("Node", node, "Lost") // whoever is killed may have told nobody
	s.says(node, fellOff, corev1.ConditionFalse)
	s.awaitEvent("Node", node, "GivenBack")
	eventually(t, "the node is to be as any other", func() error { return s.isBack(node) })
	s.settled()
}

func (s *site) killed() {
	s.t.Helper()
	if err := s.cluster.Scheduler.Kill(); err != nil {
		s.t.Fatal(err)
	}
}

// cordonedAnew has a node break again, and a person cordon it anew after the scheduler did, while nobody looks: by what
// the API server tells of who has set the cordon, the node is theirs until they uncordon it.
func (s *site) cordonedAnew(node string) {
	s.t.Helper()
	s.says(node, fellOff, corev1.ConditionTrue)
	eventually(s.t, "the node's record", func() error { return s.isLost(node) })
	s.killed()
	s.cordon(node, false)
	s.cordon(node, true)
	s.says(node, fellOff, corev1.ConditionFalse)
	s.startScheduler()
	s.staysLost(node)
	s.cordon(node, false)
	eventually(s.t, "the node is to be as any other", func() error { return s.isBack(node) })
}

// cordon cordons a node or uncordons it.
func (s *site) cordon(node string, is bool) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) { n.Spec.Unschedulable = is })
}

// becomesReadyOf has a pod of a Run that runs be ready from now on.
func (s *site) becomesReadyOf(run, name string) {
	s.t.Helper()
	eventually(s.t, name+" is to become ready", func() error {
		pod := s.podsOf(run)[name]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Status != corev1.ConditionTrue {
				c.Status, c.LastTransitionTime = corev1.ConditionTrue, metav1.Now()
			}
		}
		return s.api.Status().Update(s.t.Context(), &pod)
	})
}
