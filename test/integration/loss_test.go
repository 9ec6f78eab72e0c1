package integration

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// pause waits a random time of at most limit, so that what follows meets the scheduler at a random moment.
func pause(random *rand.Rand, limit time.Duration) {
	timer := time.NewTimer(time.Duration(random.Int64N(int64(limit))))
	defer timer.Stop()
	<-timer.C
}

// seeded is a source of randomness whose seed is logged.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestRunDeletedWhileItStarts deletes Runs at random moments: nothing of them stays.
func TestRunDeletedWhileItStarts(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	s := newSite(t, liveCluster(t), 2, 2, 32)
	for i := range 10 {
		name := fmt.Sprintf("brief-%d", i)
		s.submit(name, 32, inPods(2))
		pause(random, 400*time.Millisecond)
		s.removeRun(name)
	}
	s.submit("after", 32)
	s.await("after", rqv1.RunRunning, "bound 32 GPUs")
	s.settled()
}

// TestNamespaceDeleted deletes the namespace of a Run that runs: its GPUs and its owner's money are free again.
func TestNamespaceDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 16)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-other"}}
	s.create(other)
	run := s.run("lost", 16, inPods(2))
	run.Namespace = other.Name
	eventually(t, "submitting the Run", func() error { return s.api.Create(t.Context(), run.DeepCopy()) })
	eventually(t, "the Run is to run", func() error {
		if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(run), run); err != nil {
			return err
		}
		return is(run, rqv1.RunRunning, "bound 16 GPUs")
	})
	s.submit("next", 16)
	s.await("next", rqv1.RunPending, "short by 16")
	s.delete(other)
	s.await("next", rqv1.RunRunning, "bound 16 GPUs")
	eventually(t, "the namespace is to be gone", func() error {
		err := s.api.Get(t.Context(), client.ObjectKeyFromObject(other), other)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is %s: %v", other.Status.Phase, err)
	})
	s.settled()
}

// TestNodeDeletedWhileBinding deletes nodes at random moments after a gang was submitted: it starts whole on others.
func TestNodeDeletedWhileBinding(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	s := newSite(t, liveCluster(t), 3, 2, 100)
	for i := range 5 {
		name := fmt.Sprintf("gang-%d", i)
		s.submit(name, 16, inPods(1), inGroups(16))
		pause(random, 400*time.Millisecond)
		victim := s.node(fmt.Sprintf("d%d-0", i%3), fmt.Sprintf("d%d", i%3))
		s.delete(victim)
		s.settles(name)
		s.load(*s.node(fmt.Sprintf("d%d-0", i%3), fmt.Sprintf("d%d", i%3)))
		s.removeRun(name)
		s.awaitGone(name)
	}
}

// settles waits until a Run runs, or has failed for a lost pod that could not be replaced, and the invariants hold.
func (s *site) settles(name string) {
	s.t.Helper()
	eventually(s.t, "Run "+name+" is to run whole or to fail", func() error {
		run, err := s.get(name)
		if err != nil {
			return err
		}
		if is(run, rqv1.RunRunning, "bound") == nil || is(run, rqv1.RunFailed, "could not be replaced") == nil {
			return s.verdict(s.t.Context())
		}
		return is(run, rqv1.RunRunning, "bound")
	})
}
