package integration

import (
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

// strike takes a node out of service.
func (s *site) strike(node string) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown",
			Effect: corev1.TaintEffectNoExecute})
	})
}
