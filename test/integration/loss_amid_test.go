package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestNodesLostWhileAWidthChanges loses the node of a rank at a random moment of a growth, and of a shrink: the Run
// comes to the width that it desires, and its other ranks are left alone.
func TestNodesLostWhileAWidthChanges(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	s := newSite(t, liveCluster(t), 1, 10, 100)
	s.submit("train", 16, inPods(8), malleable(16, 64, 16), desiring(16))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	s.settled()
	for rank, to := range []int32{64, 16} {
		before := s.podsOf("train")
		s.runs(fmt.Sprintf("%s train --to %d -n %s", map[bool]string{true: "grow", false: "shrink"}[to == 64], to,
			s.namespace))
		pause(random, time.Second)
		lost := fmt.Sprintf("train-%d", rank)
		s.strike(before[lost].Spec.NodeName)
		eventually(t, fmt.Sprintf("a width of %d GPUs", to), func() error {
			run, err := s.get("train")
			if err != nil {
				return err
			}
			if w := run.Status.Width; *w != (rqv1.RunWidth{Min: 16, Max: 64, Desired: to, Granted: to, Allocated: to}) {
				return fmt.Errorf("width %+v: %s", w, run.Status.Message)
			}
			return s.asWideAs(run, to)
		})
		s.settled()
		for name, pod := range s.podsOf("train") {
			if was, there := before[name]; there && (was.UID == pod.UID) == (name == lost) {
				t.Errorf("on the way to %d GPUs: pod %s is still the same: %v", to, name, was.UID == pod.UID)
			}
		}
	}
}

// TestNodeLostUnderARunThatIsDeleted has the pods of a Run that is deleted take their time to end: those on a node that
// is lost meanwhile are not waited for.
func TestNodeLostUnderARunThatIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	s.submit("slow", 16, inPods(8), func(r *rqv1.Run) {
		grace := int64(600)
		template(r).Annotations = map[string]string{"pod-delete.stage.kwok.x-k8s.io/delay": "10s"}
		r.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
	})
	s.await("slow", rqv1.RunRunning, "bound 16 GPUs")
	before := s.podsOf("slow")
	s.removeRun("slow")
	eventually(t, "its pods are to be told", func() error {
		for _, pod := range s.podsOf("slow") {
			if pod.DeletionTimestamp == nil {
				return fmt.Errorf("%s is not", pod.Name)
			}
		}
		return nil
	})
	s.strike(before["slow-0"].Spec.NodeName)
	eventually(t, "the pod on the lost node", func() error {
		var left []corev1.Pod
		for _, pod := range s.podsOf("slow") {
			left = append(left, pod)
		}
		if len(left) > 1 || len(left) == 1 && left[0].Name != "slow-1" {
			return fmt.Errorf("%d pods are left", len(left))
		}
		if got := s.closures("slow"); got[rqv1.ClosedNodeFailure] != 1 {
			return fmt.Errorf("Leases are closed as %v", got)
		}
		return nil
	})
	eventually(t, "the end of the other", func() error {
		if left := len(s.podsOf("slow")); left > 0 {
			return errors.New("it is still there")
		}
		return differs(map[rqv1.ClosureReason]int{rqv1.ClosedNodeFailure: 1, rqv1.ClosedDeleted: 1}, s.closures("slow"))
	})
	s.settled()
}

// strike takes a node out of service.
func (s *site) strike(node string) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown",
			Effect: corev1.TaintEffectNoExecute})
	})
}
