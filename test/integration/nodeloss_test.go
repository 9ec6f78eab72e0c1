package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/story"
)

// brokenGPU is the condition that the schedulers of some tests count as evidence of a loss.
const brokenGPU = "GPUBroken"

const swappedMessage = "group 0 swapped to spare after node failure"

// guarded starts a Run of two pods with a spare, in a domain of four nodes, and returns its pods.
func (s *site) guarded() map[string]corev1.Pod {
	s.t.Helper()
	s.submit("guarded", 16, inPods(8), inGroups(16), withSpares(8))
	s.await("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.settled()
	return s.podsOf("guarded")
}

// silence stops a node's heartbeats: somebody who does not renew it takes its kubelet lease over, so that kwok plays
// neither the node nor its pods any more.
func (s *site) silence(node string) {
	s.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	nobody, hours := "nobody", int32(36000)
	edit(s, lease, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &nobody, &hours })
}

// revive lets kwok have a node again, and returns once it has.
func (s *site) revive(node string) {
	s.t.Helper()
	s.forsake(node)
	eventually(s.t, "kwok is to have node "+node, func() error { return s.WakePods(s.t.Context(), sets.New(node)) })
}

// forsake has nobody hold a node that was silenced.
func (s *site) forsake(node string) {
	s.t.Helper()
	s.delete(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}})
}

// swapped asserts that a pod's rank has moved to the spare's node and nothing else has changed.
func (s *site) swapped(before map[string]corev1.Pod, rank string) {
	s.t.Helper()
	s.await("guarded", rqv1.RunRunning, swappedMessage)
	s.settled()
	after := s.podsOf("guarded")
	if on, want := after[rank].Spec.NodeName, before["guarded-s0"].Spec.NodeName; on != want {
		s.t.Errorf("%s is on %s, want the spare's node %s", rank, on, want)
	}
	if epoch := after[rank].Labels[rqv1.LabelEpoch]; epoch != "1" {
		s.t.Errorf("%s has the epoch %q, want 1", rank, epoch)
	}
	for name, pod := range after {
		if survived := pod.UID == before[name].UID; survived == (name == rank || name == "guarded-s0") {
			s.t.Errorf("pod %s survived: %v", name, survived)
		}
	}
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{"": 3, rqv1.ClosedNodeFailure: 1, rqv1.ClosedSwap: 1},
		s.closures("guarded")); diff != "" {
		s.t.Error(diff)
	}
	for _, lease := range s.leasesOf("guarded") {
		want := rqv1.ReasonStart
		if !lease.Status.Closed && lease.Labels[rqv1.LabelIndex] == after[rank].Labels[rqv1.LabelIndex] &&
			lease.Spec.Slice.Role == rqv1.RoleActive {
			want = rqv1.ReasonSwap
		}
		if lease.Spec.Reason != want {
			s.t.Errorf("Lease %s was opened for %s, want %s", lease.Name, lease.Spec.Reason, want)
		}
	}
}

// recordedLost is an error unless a node is cordoned with a record, and an event tells why.
func (s *site) recordedLost(name, reason string) error {
	if err := s.marked(name, reason); err != nil {
		return err
	}
	var events eventsv1.EventList
	if err := s.api.List(s.t.Context(), &events, ofNodes); err != nil {
		return err
	}
	for _, event := range events.Items {
		if event.Regarding.Kind == "Node" && event.Regarding.Name == name && event.Reason == "Lost" {
			return nil
		}
	}
	return errors.New("no event tells that it is lost")
}

// marked is an error unless a node is cordoned with a record.
func (s *site) marked(name, reason string) error {
	node := &corev1.Node{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	return story.Recorded(node, reason)
}

// TestLostNodes has nodes be lost in every way that needs no waiting: the spare takes the rank's place. The cluster is
// its own: what befalls other nodes at the same time would hold these losses back.
func TestLostNodes(t *testing.T) {
	t.Parallel()
	cluster := ownCluster(t, withoutElection, map[string]any{"nodeLossConditions": []string{brokenGPU}})
	(&site{cluster: cluster, t: t}).startScheduler()
	for name, c := range map[string]struct {
		strike func(s *site, node *corev1.Node)
		record string
	}{
		"deleted": {func(s *site, node *corev1.Node) { s.delete(node) }, ""},
		"out of service": {func(s *site, node *corev1.Node) {
			edit(s, node, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown",
					Effect: corev1.TaintEffectNoExecute})
			})
		}, "OutOfService"},
		"condition": {func(s *site, node *corev1.Node) {
			eventually(s.t, "setting a condition", func() error {
				if err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
					return err
				}
				node.Status.Conditions = append(node.Status.Conditions,
					corev1.NodeCondition{Type: brokenGPU, Status: corev1.ConditionTrue, Reason: "XID", Message: "XID 79"})
				return s.api.Status().Update(s.t.Context(), node)
			})
		}, "condition GPUBroken is True: XID 79"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, cluster, 1, 4, 100)
			before := s.guarded()
			lost := before["guarded-1"].Spec.NodeName
			c.strike(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost}})
			s.swapped(before, "guarded-1")
			if c.record != "" {
				eventually(t, "the node's record", func() error { return s.recordedLost(lost, c.record) })
			}
		})
	}
}

// TestSilentNode stops a node's heartbeats: once its kubelet lease is stale the spare takes over. The node comes back,
// and nothing changes until a person uncordons it. The nodes of the other domain are there for a machine that is so
// busy that kwok is silent for all: more than three at once are not taken for lost.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"nodeLossGrace": "30s"}), 2, 3, 100)
	s.startScheduler()
	before := s.guarded()
	lost := before["guarded-0"].Spec.NodeName
	s.silence(lost)
	s.awaitSwap(before)
	eventually(t, "the node's record", func() error { return s.recordedLost(lost, "KubeletLeaseStale") })
	pods := s.uids("guarded")

	s.revive(lost)
	throughout(t, 5*time.Second, "the node that is back is not to be used", func() error {
		if diff := cmp.Diff(pods, s.uids("guarded")); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost}}, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	eventually(t, "the spare is to be where there is room again", func() error {
		if on := s.podsOf("guarded")["guarded-s0"].Spec.NodeName; on != lost {
			return fmt.Errorf("it is on %q", on)
		}
		node := &corev1.Node{}
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: lost}, node); err != nil {
			return err
		}
		if record, there := node.Annotations[rqv1.AnnotationLost]; there {
			return fmt.Errorf("the node's record is still there: %s", record)
		}
		return nil
	})
	s.swapped(before, "guarded-0")
}

// awaitSwap waits until a swap is told.
func (s *site) awaitSwap(before map[string]corev1.Pod) {
	s.t.Helper()
	began := time.Now()
	s.await("guarded", rqv1.RunRunning, swappedMessage)
	s.t.Logf("swapped %s after the kubelet fell silent", time.Since(began).Round(time.Second))
	if pod := s.podsOf("guarded")["guarded-1"]; pod.UID != before["guarded-1"].UID {
		s.t.Errorf("the survivor was replaced")
	}
}
