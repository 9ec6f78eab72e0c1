package integration

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// spotNotice does to a node what aws-node-termination-handler does at a spot interruption notice.
func (s *site) spotNotice(node string) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		n.Labels["aws-node-termination-handler/action"] = "cordon-and-drain"
		n.Spec.Unschedulable = true
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "aws-node-termination-handler/spot-itn",
			Value: "i-0123456789", Effect: corev1.TaintEffectNoSchedule})
	})
}

// TestASpotNotice replays what clouds do to a node that they take back: the rank goes elsewhere before the node is
// gone, and nothing counts against the Run. Without a checkpoint it has no restart to spend.
func TestASpotNotice(t *testing.T) {
	t.Parallel()
	for name, notice := range map[string]func(s *site, node string){
		"aws": func(s *site, node string) { // the handler tells the API server, and evicts
			s.spotNotice(node)
			pod := s.podsOf("train")["train-1"]
			done := s.drain(s.t.Context(), node)
			s.endsEvicted(&pod)
			for _, said := range done() {
				if said != "" {
					s.t.Errorf("draining: %s", said)
				}
			}
		},
		"gke": func(s *site, node string) { // a taint, then the kubelet shuts the node down gracefully
			edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "cloud.google.com/impending-node-termination",
					Effect: corev1.TaintEffectNoSchedule})
			})
			end := disruptedBy("TerminationByKubelet", "Terminated")
			end.Message = "Pod was terminated in response to imminent node shutdown."
			s.ends("train-1", end)
			s.says(node, string(corev1.NodeReady), corev1.ConditionFalse)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 1, 4, 100)
			s.submit("train", 16, inPods(8), inGroups(16), withSpares(8), slowly)
			s.await("train", rqv1.RunRunning, "bound 16 GPUs")
			s.settled()
			before := s.podsOf("train")
			node := before["train-1"].Spec.NodeName
			notice(s, node)
			eventually(t, "the rank is to be on another node", func() error {
				pod := s.podsOf("train")["train-1"]
				if on := pod.Spec.NodeName; pod.UID == before["train-1"].UID || on == "" || on == node {
					return fmt.Errorf("it is on %q", on)
				}
				return nil
			})
			s.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
			eventually(t, "the Run is to be whole, and to have a spare", func() error {
				run, err := s.get("train")
				if err != nil || run.Status.Phase != rqv1.RunRunning || run.Status.Width.Allocated != 16 {
					return fmt.Errorf("it is %s: %s: %w", run.Status.Phase, run.Status.Message, err)
				}
				if run.Status.Restarts != nil || slices.ContainsFunc(run.Status.Deaths, func(d rqv1.RunDeath) bool {
					return d.Cause != rqv1.CauseNode
				}) {
					return fmt.Errorf("it counts: %+v, %+v", run.Status.Restarts, run.Status.Deaths)
				}
				if on := s.podsOf("train")["train-s0"].Spec.NodeName; on == "" || on == node {
					return fmt.Errorf("the spare is on %q", on)
				}
				return nil
			})
			if s.podsOf("train")["train-0"].UID != before["train-0"].UID {
				t.Error("the other rank was touched")
			}
			if err := s.api.Get(t.Context(), client.ObjectKey{Name: node}, &corev1.Node{}); !apierrors.IsNotFound(err) {
				t.Errorf("the node: %v", err)
			}
			s.settled()
		})
	}
}
