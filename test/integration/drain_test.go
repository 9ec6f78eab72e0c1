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

// TestTwoDrainsAtOnce has two nodes be emptied at once under a Run with one spare. The rank of one goes to the spare;
// the other's waits until there is room, and it is said why. At no time does the Run lack two ranks.
func TestTwoDrainsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 100)
	s.submit("train", 16, inPods(8), inGroups(16), withSpares(8))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	s.protected("train", 2)
	before := s.podsOf("train")
	nodes := []string{before["train-0"].Spec.NodeName, before["train-1"].Spec.NodeName}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := s.drain(ctx, nodes...)
	fewest := make(chan int, 1)
	watched, stop := context.WithCancel(t.Context())
	go func() {
		least := 2
		for watched.Err() == nil {
			var pods corev1.PodList
			if s.api.List(watched, &pods, client.InNamespace(s.namespace), client.MatchingLabels{rqv1.LabelRun: "train",
				rqv1.LabelRole: string(rqv1.RoleActive)}) == nil {
				least = min(least, readyRanks(pods.Items))
			}
		}
		fewest <- least
	}()
	waits := ""
	eventually(t, "one rank is to have moved, and the other to wait", func() error {
		run, err := s.get("train")
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionDrainWaits)
		if c == nil || c.Status != metav1.ConditionTrue || run.Status.Width.Allocated != 16 {
			return fmt.Errorf("it holds %+v: %s; %+v", run.Status.Width, run.Status.Message, c)
		}
		waits = c.Message
		return nil
	})
	if !strings.Contains(waits, "neither a spare nor free GPUs") {
		t.Errorf("it is said: %s", waits)
	}
	after, left := s.podsOf("train"), ""
	for _, name := range []string{"train-0", "train-1"} {
		if after[name].UID == before[name].UID {
			left += after[name].Spec.NodeName
		} else if on := after[name].Spec.NodeName; on != before["train-s0"].Spec.NodeName {
			t.Errorf("%s is on %s, want its spare's node", name, on)
		}
	}
	eventually(t, "an event on the node", func() error { return s.nodeTold(left, "DrainWaits", "neither a spare nor") })
	s.load(*s.node("d0-9", "d0"))
	eventually(t, "the other rank is to have moved, too", func() error {
		for name, pod := range s.podsOf("train") {
			if strings.HasPrefix(name, "train-s") {
				continue
			}
			if on := pod.Spec.NodeName; on == "" || on == nodes[0] || on == nodes[1] {
				return fmt.Errorf("%s is on %q", name, on)
			}
		}
		return nil
	})
	for i, said := range done() {
		if said != "" {
			t.Errorf("draining %s: %s", nodes[i], said)
		}
	}
	s.await("train", rqv1.RunRunning, "")
	stop()
	if least := <-fewest; least < 1 {
		t.Errorf("only %d of 2 ranks ran at a time", least)
	}
	for _, node := range nodes {
		edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
			n.Spec.Unschedulable = false
		})
	}
	s.settled()
}

// readyRanks counts the pods that are ready and have not been told to go.
func readyRanks(pods []corev1.Pod) (n int) {
	for i := range pods {
		for _, c := range pods[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods[i].DeletionTimestamp == nil {
				n++
			}
		}
	}
	return n
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
