package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// protected waits until the ranks of a Run are protected: it has run for a minute by then.
func (s *site) protected(run string, ranks int32) {
	s.t.Helper()
	eventually(s.t, "the Run's ranks are to be protected", func() error {
		guard := &policyv1.PodDisruptionBudget{}
		err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: run}, guard)
		if err != nil || guard.Spec.MinAvailable.IntVal != ranks || guard.Status.CurrentHealthy != ranks {
			return fmt.Errorf("PodDisruptionBudget %+v: %w", guard.Status, err)
		}
		return nil
	})
}

// drain empties nodes at once, as administrators do, until it is done with them or the context ends.
func (s *site) drain(ctx context.Context, nodes ...string) (done func() []string) {
	var wait sync.WaitGroup
	said := make([]string, len(nodes))
	for i, node := range nodes {
		wait.Go(func() {
			_, problems, err := s.KubectlStdin(ctx, strings.NewReader(""), "drain", node, "--force", "--ignore-daemonsets",
				"--delete-emptydir-data", "--pod-selector="+rqv1.LabelRun)
			if err != nil {
				said[i] = problems
			}
		})
	}
	return func() []string { wait.Wait(); return said }
}

// TestADrainAsksOtherRules has a node be emptied of a rank that keeps off a pod on the only other node: it is not
// evicted, and it is said which rule that is. It moves once the pod is gone.
func TestADrainAsksOtherRules(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 100)
	s.submit("train", 8, inPods(8), func(r *rqv1.Run) {
		template(r).Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"noisy": "yes"}}}}}}
	})
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	s.protected("train", 1)
	before := s.podsOf("train")["train-0"]
	s.load(*s.node("d0-9", "d0"))
	noisy := s.bystander("noisy", "d0-9", "1", 0)
	noisy.Labels = map[string]string{"noisy": "yes"}
	s.create(noisy)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := s.drain(ctx, before.Spec.NodeName)
	eventually(t, "the drain is to wait, and to say for which rule", func() error {
		run, err := s.get("train")
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionDrainWaits)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "anti-affinity") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	eventually(t, "an event on the node", func() error {
		return s.nodeTold(before.Spec.NodeName, "DrainWaits", "anti-affinity")
	})
	if now := s.podsOf("train")["train-0"]; now.UID != before.UID || now.DeletionTimestamp != nil {
		t.Errorf("the rank was evicted, and no node takes another")
	}
	s.protected("train", 1)
	s.delete(noisy)
	eventually(t, "the rank is to have moved", func() error {
		if on := s.podsOf("train")["train-0"].Spec.NodeName; on != s.namespace+"-d0-9" {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	if said := done()[0]; said != "" {
		t.Errorf("draining: %s", said)
	}
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: before.Spec.NodeName}}, func(n *corev1.Node) {
		n.Spec.Unschedulable = false
	})
	s.await("train", rqv1.RunRunning, "")
	s.settled()
}
