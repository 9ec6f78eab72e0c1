package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// wanting has each pod of a Run ask for CPU.
func wanting(cpu string) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		template(r).Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// crowd takes nearly all CPU of the site's nodes on which no pod of a Run is, and none of their GPUs.
func (s *site) crowd(run string, nodes ...string) {
	s.t.Helper()
	used := s.nodesOf(run)
	for _, node := range nodes {
		if used[node] > 0 {
			continue
		}
		pod := s.foreign("crowd-"+node, node, 0)
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("63")}}
		s.create(pod)
	}
}

// TestNoCPUForARank loses a rank where the only node with free GPUs has no CPU: the spare of its group serves, or a
// malleable Run goes on narrower. Where the spare's node has none either, the Run ends.
func TestNoCPUForARank(t *testing.T) {
	t.Parallel()
	t.Run("spare", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, liveCluster(t), 1, 4, 100)
		s.submit("train", 16, inPods(8), inGroups(16), withSpares(8), wanting("4"))
		s.await("train", rqv1.RunRunning, "bound 16 GPUs")
		s.crowd("train", "d0-0", "d0-1", "d0-2", "d0-3")
		pods := s.podsOf("train")
		rank, spare := pods["train-0"], pods["train-s0"]
		edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: rank.Spec.NodeName}}, func(n *corev1.Node) {
			n.Spec.Unschedulable = true
		})
		s.delete(&rank)
		eventually(t, "the rank is to take the spare's place", func() error {
			if on := s.podsOf("train")["train-0"].Spec.NodeName; on != spare.Spec.NodeName {
				return fmt.Errorf("it is on %q, want %s", on, spare.Spec.NodeName)
			}
			return nil
		})
		s.await("train", rqv1.RunRunning, "bound 16 GPUs")
		s.settled()
	})
	t.Run("nowhere", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, liveCluster(t), 1, 4, 100)
		s.submit("train", 16, inPods(8), inGroups(16), withSpares(8), wanting("4"))
		s.await("train", rqv1.RunRunning, "bound 16 GPUs")
		s.crowd("none", "d0-0", "d0-1", "d0-2", "d0-3") // also where the spare is
		rank := s.podsOf("train")["train-0"]
		edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: rank.Spec.NodeName}}, func(n *corev1.Node) {
			n.Spec.Unschedulable = true
		})
		s.delete(&rank)
		s.await("train", rqv1.RunFailed, "rejected by other scheduling rules, such as")
		s.settled()
	})
	t.Run("narrower", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, liveCluster(t), 1, 4, 100)
		s.submit("train", 24, inPods(8), wanting("4"), elastic(8, 8))
		s.await("train", rqv1.RunRunning, "bound 24 GPUs")
		s.crowd("train", "d0-0", "d0-1", "d0-2", "d0-3")
		s.strike(s.podsOf("train")["train-1"].Spec.NodeName)
		s.await("train", rqv1.RunRunning, "shrunk to 16 GPUs")
		s.settled()
	})
}

// TestLabelRemovedUnderARun takes the topology label off a node of a Run that runs, and then another of its nodes away:
// the lost rank is replaced where its group lies.
func TestLabelRemovedUnderARun(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 2, 4, 100)
	s.submit("train", 24, inPods(8), inGroups(24))
	s.await("train", rqv1.RunRunning, "bound 24 GPUs")
	pods := s.podsOf("train")
	domain := s.domainOf(pods["train-0"].Spec.NodeName)
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pods["train-1"].Spec.NodeName}}, func(n *corev1.Node) {
		delete(n.Labels, "fabric.domain")
	})
	lost := pods["train-0"].Spec.NodeName
	s.strike(lost)
	eventually(t, "the rank is to be replaced", func() error {
		on := s.podsOf("train")["train-0"].Spec.NodeName
		if on == "" || on == lost {
			return fmt.Errorf("it is on %q", on)
		}
		if to := s.domainOf(on); to != domain {
			return fmt.Errorf("it is in %s, its group in %s", to, domain)
		}
		return nil
	})
	s.await("train", rqv1.RunRunning, "bound 24 GPUs")
}

// endsFirst has the pods of a Run do as kubelets have them that are told to go: it is said that their containers have
// ended, and a second later they are gone.
func endsFirst(r *rqv1.Run) {
	grace := int64(30)
	template(r).Annotations = map[string]string{"pod-terminate.stage.kwok.x-k8s.io/delay": "0s",
		"pod-delete.stage.kwok.x-k8s.io/delay": "1s"}
	r.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
}

// domainOf returns the fabric domain of a node by its label.
func (s *site) domainOf(name string) string {
	s.t.Helper()
	node, err := s.kube.CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return node.Labels["fabric.domain"]
}
