package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// fellOff is a condition of NVSentinel's, which counts without any configuration.
	fellOff = "SysLogsGPUFallenOff"
	// The annotations that NVSentinel leaves on a node while it has it in quarantine. The last one says that it found the
	// node cordoned, and will leave it so.
	quarantined, quarantineCordons = "quarantineHealthEvent", "quarantineHealthEventIsCordoned"
	quarantineFound                = "quarantineHealthEventCordonPreExisting"
)

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

// quarantine does to a node what NVSentinel does at the start of a quarantine: it cordons the node if nobody has, and
// says so.
func (s *site) quarantine(name string) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Node) {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[quarantined], n.Annotations[quarantineCordons] = `[{"checkName":"SysLogsGPUFallenOff"}]`, "True"
		if n.Spec.Unschedulable {
			n.Annotations[quarantineFound] = "True"
		}
		n.Spec.Unschedulable = true
	})
}

// unquarantine does to a node what NVSentinel does at the end of a quarantine. Versions that do not note who was first
// uncordon the node in any case.
func (s *site) unquarantine(name string, anyCordon bool) {
	s.t.Helper()
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Node) {
		if n.Annotations[quarantineFound] == "" || anyCordon {
			n.Spec.Unschedulable = false
		}
		for _, key := range []string{quarantined, quarantineCordons, quarantineFound} {
			delete(n.Annotations, key)
		}
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
	_, recorded := node.Annotations[rqv1.AnnotationLost]
	_, cordoned := node.Annotations[rqv1.AnnotationCordoned]
	if recorded || cordoned || node.Spec.Unschedulable {
		return fmt.Errorf("it is cordoned: %v, its annotations are %v", node.Spec.Unschedulable, node.Annotations)
	}
	return nil
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

// healthCluster is a cluster with the defaults of signs of health, and a grace that a busy machine does not exceed.
func healthCluster(t *testing.T) *cluster {
	t.Helper()
	c := clusterForMany(t, withoutElection, map[string]any{"nodeLossGrace": "2m"})
	(&site{cluster: c, t: t}).startScheduler()
	return c
}

// TestNVSentinelRepairsANode replays what NVSentinel does to a node with a rank on it: its condition, the cordon, the
// drain, the repair, and the way back. The rank is swapped at once; the node is used again when NVSentinel lets go of
// it, whether it was the first to cordon it or not.
func TestNVSentinelRepairsANode(t *testing.T) {
	t.Parallel()
	c := healthCluster(t)
	for name, how := range map[string]struct {
		first, anyCordon bool // whether it cordons before the scheduler does, and uncordons whoever has cordoned
	}{
		"cordons first":        {first: true},
		"finds it cordoned":    {},
		"uncordons either way": {anyCordon: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c, 1, 4, 100)
			lost := s.brokenUnder(func(node string) {
				if how.first {
					s.quarantine(node)
				}
				s.says(node, fellOff, corev1.ConditionTrue)
			})
			if !how.first {
				s.quarantine(lost)
			}
			s.nothingToDrain(lost)
			s.silence(lost) // it is restarted
			s.revive(lost)
			s.says(lost, fellOff, corev1.ConditionFalse)
			s.staysLost(lost)
			s.unquarantine(lost, how.anyCordon)
			s.awaitUsed(lost)
		})
	}
}

// nothingToDrain asserts that a drain would find no pod of ours on a node.
func (s *site) nothingToDrain(node string) {
	s.t.Helper()
	eventually(s.t, "there is to be nothing to drain", func() error {
		pods, err := s.kube.CoreV1().Pods("").List(s.t.Context(),
			metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods, the first is %s", len(pods.Items), pods.Items[0].Name)
		}
		return err
	})
}

// TestANodeIsBackWhenItsSignIsGone has nobody but the scheduler cordon a node: it is used again without anybody's help,
// also if the scheduler is killed as soon as it has recorded the loss, and again when the sign is gone.
func TestANodeIsBackWhenItsSignIsGone(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"alive": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, healthCluster(t), 1, 4, 100)
			lost := s.brokenUnder(func(node string) {
				s.says(node, fellOff, corev1.ConditionTrue)
				if killed {
					eventually(t, "the node's record", func() error { return s.isLost(node) })
					s.killed()
					s.startScheduler()
				}
			})
			if !killed { // whoever is killed may have told nobody
				s.awaitEvent("Node", lost, "Lost")
			}
			s.staysLost(lost)
			if killed {
				s.killed()
			}
			s.says(lost, fellOff, corev1.ConditionFalse)
			if killed {
				s.startScheduler()
				s.killAfter(5 * time.Second) // about when the node is to be given back
			}
			s.awaitUsed(lost)
			if !killed {
				s.awaitEvent("Node", lost, "GivenBack")
			}
		})
	}
}

func (s *site) killed() {
	s.t.Helper()
	if err := s.cluster.Scheduler.Kill(); err != nil {
		s.t.Fatal(err)
	}
}

// TestACordonOfSomebodyElseStays has people cordon a node that breaks and is repaired: before, or anew after the
// scheduler did, while nobody looks. Or they say that it is lost. The node is theirs until they uncordon it.
func TestACordonOfSomebodyElseStays(t *testing.T) {
	t.Parallel()
	cordon := func(s *site, name string, is bool) {
		edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Node) { n.Spec.Unschedulable = is })
	}
	for name, c := range map[string]struct{ before, after func(s *site, node string) }{
		"before": {func(s *site, node string) { cordon(s, node, true) }, func(*site, string) {}},
		"anew": {func(*site, string) {}, func(s *site, node string) {
			s.killed()
			cordon(s, node, false)
			cordon(s, node, true)
			s.says(node, fellOff, corev1.ConditionFalse)
			s.startScheduler()
		}},
		"by word": {func(*site, string) {}, func(s *site, node string) { s.runs("nodes lost " + node + " --because mine") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, healthCluster(t), 1, 4, 100)
			lost := s.brokenUnder(func(node string) {
				c.before(s, node)
				s.says(node, fellOff, corev1.ConditionTrue)
			})
			c.after(s, lost)
			s.says(lost, fellOff, corev1.ConditionFalse)
			s.staysLost(lost)
			if run, err := s.get("next"); err != nil || run.Status.Phase != rqv1.RunPending {
				t.Error(errors.Join(err, errors.New("the Run that waits for the node does not wait any more")))
			}
			cordon(s, lost, false)
			s.awaitUsed(lost)
		})
	}
}
