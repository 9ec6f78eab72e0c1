package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// calm is how long a waiting gang is watched for things that it should not do.
const calm = 3 * time.Second

// foreign is a pod of somebody else's that holds GPUs of a node.
func (s *site) foreign(name, node string, gpus int64) *corev1.Pod {
	grace := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: s.namespace + "-" + node, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10.1",
				Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{gpuResource: *resource.NewQuantity(gpus, resource.DecimalSI)}},
			}},
		},
	}
}

// TestWaitingGangCostsOneCycle counts scheduling cycles, and so runs beside no other test: a gang of 16 pods that does
// not fit costs one, holds nothing, and is not tried again for events that do not concern it.
func TestWaitingGangCostsOneCycle(t *testing.T) {
	s := newSite(t, liveCluster(t), 2, 1, 100)
	s.submit("holder", 8)
	s.await("holder", rqv1.RunRunning, "bound 8 GPUs")
	before := attempts(t, s.cluster)
	s.submit("waiting", 16, inPods(1))
	s.await("waiting", rqv1.RunPending, "short by 8")
	if cost := attempts(t, s.cluster) - before; cost != 1 {
		t.Errorf("the waiting gang cost %d cycles", cost)
	}
	if err := s.holdsNothing("waiting"); err != nil {
		t.Error(err)
	}
	before = attempts(t, s.cluster)
	other := s.budget(s.namespace+"-other", 8)
	other.Spec.Owner += "-other"
	s.create(other)
	elsewhere := s.node("elsewhere-0", "elsewhere")
	elsewhere.Labels["gpu.flavor"] = s.flavor + "-other"
	s.load(*elsewhere)
	for i := range 5 {
		name := fmt.Sprintf("passing-%d", i)
		s.create(s.foreign(name, "elsewhere-0", 4))
		edit(s, other, func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency++ })
		edit(s, s.run("holder", 8), func(r *rqv1.Run) { r.Annotations = map[string]string{"seen": name} })
		s.delete(s.foreign(name, "elsewhere-0", 4))
	}
	throughout(t, calm, "the waiting gang", func() error {
		if again := attempts(t, s.cluster) - before; again != 0 {
			return fmt.Errorf("it was tried %d times more", again)
		}
		return s.holdsNothing("waiting")
	})
	s.settled()
}
