package integration

import (
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

// crowd takes nearly all CPU of nodes, and none of their GPUs.
func (s *site) crowd(nodes ...string) {
	s.t.Helper()
	for _, node := range nodes {
		pod := s.foreign("crowd-"+node, node, 0)
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("63")}}
		s.create(pod)
	}
}

// TestNoCPUForARank loses a rank where no node has CPU for it, nor that of its group's spare: the Run ends.
func TestNoCPUForARank(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("train", 16, inPods(8), inGroups(16), withSpares(8), wanting("4"))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	s.crowd("d0-0", "d0-1", "d0-2", "d0-3") // also where the spare is
	rank := s.podsOf("train")["train-0"]
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: rank.Spec.NodeName}}, func(n *corev1.Node) {
		n.Spec.Unschedulable = true
	})
	s.delete(&rank)
	s.await("train", rqv1.RunFailed, "rejected by other scheduling rules, such as")
	s.settled()
}
