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

// TestWaitingGangIsWoken makes room for a waiting gang, or a payer, in each way there is.
func TestWaitingGangIsWoken(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		budget  int32
		prepare func(s *site)
		refusal string
		wake    func(s *site)
	}{
		"a Lease closes": {
			budget: 100, refusal: "short by 8",
			prepare: func(s *site) { s.submit("holder", 8); s.await("holder", rqv1.RunRunning, "bound 8 GPUs") },
			wake:    func(s *site) { s.removeRun("holder") },
		},
		"a node is added": {
			budget: 100, refusal: "short by",
			prepare: func(s *site) { s.create(s.foreign("holder", "d0-0", 8)) },
			wake:    func(s *site) { s.addNodes("d1", 1) },
		},
		"a Budget is raised": {
			budget: 8, refusal: "short by 8",
			prepare: func(*site) {},
			wake: func(s *site) {
				edit(s, s.budget(s.namespace, 0), func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 16 })
			},
		},
		"a Budget is created": {
			budget: 0, refusal: "no Budget",
			prepare: func(*site) {},
			wake:    func(s *site) { s.create(s.budget(s.namespace, 16)) },
		},
		"a node is uncordoned": {
			budget: 100, refusal: "short by",
			prepare: func(s *site) { edit(s, s.node("d0-1", "d0"), func(n *corev1.Node) { n.Spec.Unschedulable = true }) },
			wake:    func(s *site) { edit(s, s.node("d0-1", "d0"), func(n *corev1.Node) { n.Spec.Unschedulable = false }) },
		},
		"a foreign pod is deleted": {
			budget: 100, refusal: "short by 8",
			prepare: func(s *site) { s.create(s.foreign("holder", "d0-0", 8)) },
			wake:    func(s *site) { s.delete(s.foreign("holder", "d0-0", 8)) },
		},
		"room where it is paid for": {
			budget: 0, refusal: "short by 16",
			prepare: func(s *site) {
				s.addNodes("d1", 2)
				budget := s.budget(s.namespace, 100)
				budget.Spec.Envelopes[0].Selector = map[string]string{"fabric.domain": s.namespace + "-d0"}
				s.create(budget)
				s.create(s.foreign("holder", "d0-0", 8))
				s.create(s.foreign("holder-2", "d0-1", 8))
			},
			wake: func(s *site) {
				s.delete(s.foreign("holder", "d0-0", 8))
				s.delete(s.foreign("holder-2", "d0-1", 8))
			},
		},
		"a payer is free again": {
			budget: 16, refusal: "budget of",
			prepare: func(s *site) {
				s.addNodes("d1", 2)
				s.submit("holder", 8)
				s.await("holder", rqv1.RunRunning, "bound 8 GPUs")
			},
			wake: func(s *site) { s.removeRun("holder") },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 1, 2, c.budget)
			c.prepare(s)
			s.submit("waiting", 16)
			s.await("waiting", rqv1.RunPending, c.refusal)
			if err := s.holdsNothing("waiting"); err != nil {
				t.Error(err)
			}
			c.wake(s)
			s.await("waiting", rqv1.RunRunning, "bound 16 GPUs")
			s.settled()
		})
	}
}

// TestPodsOfAWaitingRun counts the pods of a Run of four: none while its money is in use, its leader's while only GPUs
// are short, and all of them when it starts.
func TestPodsOfAWaitingRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 8)
	s.submit("holder", 8)
	s.await("holder", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("waiting", 8, inPods(2))
	pods := func(want int) func() error {
		return func() error {
			if n := len(s.podsOf("waiting")); n != want {
				return fmt.Errorf("it has %d pods, want %d", n, want)
			}
			return nil
		}
	}
	s.await("waiting", rqv1.RunPending, "8 of 8 GPUs in use")
	throughout(t, calm, "a Run that nobody can pay for", pods(0))
	edit(s, s.budget(s.namespace, 0), func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 16 })
	s.await("waiting", rqv1.RunPending, "short by 8")
	eventually(t, "its leader", pods(1))
	throughout(t, calm, "a Run that waits for GPUs", pods(1))
	s.removeRun("holder")
	s.await("waiting", rqv1.RunRunning, "bound 8 GPUs")
	if err := pods(4)(); err != nil {
		t.Error(err)
	}
	for name, pod := range s.podsOf("waiting") {
		if size := environment(&pod)["WORLD_SIZE"]; size != "4" {
			t.Errorf("pod %s is told that there are %q ranks", name, size)
		}
	}
	s.settled()
}
