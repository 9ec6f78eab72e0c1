package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// soon is well before Kubernetes' own garbage collector ends the pods of a deleted node.
const soon = 20 * time.Second

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

// TestRunReplacedByItsName deletes a Run and submits another of its name at once: the second is served as its own.
func TestRunReplacedByItsName(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 16)
	s.submit("again", 16, inPods(4))
	first := s.await("again", rqv1.RunRunning, "bound 16 GPUs")
	s.removeRun("again")
	eventually(t, "the name is to be free", func() error {
		return s.api.Create(t.Context(), s.run("again", 8, inPods(1)))
	})
	eventually(t, "the second Run is to run", func() error {
		run, err := s.get("again")
		if err == nil && run.UID == first.UID {
			err = fmt.Errorf("it is the first")
		}
		if err != nil {
			return err
		}
		return is(run, rqv1.RunRunning, "bound 8 GPUs")
	})
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

// TestPodDeletedByHand deletes a pod of a Run that runs: another takes its rank, under a Lease of its own.
func TestPodDeletedByHand(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 16)
	s.submit("train", 16, inPods(4))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	before := s.podsOf("train")
	victim := before["train-2"]
	s.delete(&victim)
	eventually(t, "the rank is to be taken again", func() error {
		after := s.podsOf("train")
		if pod := after["train-2"]; len(after) != 4 || pod.UID == victim.UID || pod.Spec.NodeName == "" {
			return fmt.Errorf("%d pods; train-2 is on %q", len(after), pod.Spec.NodeName)
		}
		return nil
	})
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	s.settled()
	for name, pod := range s.podsOf("train") {
		if survived := pod.UID == before[name].UID; survived == (name == "train-2") {
			t.Errorf("pod %s survived: %v", name, survived)
		}
	}
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{"": 4, rqv1.ClosedDeleted: 1}, s.closures("train")); diff != "" {
		t.Error(diff)
	}
}

// TestNodeDeletedUnderARun deletes a node under a Run: lost pods are replaced in their group's domain when there is
// room; else the Run waits again if it has a checkpoint, and fails if not (R22, R27).
func TestNodeDeletedUnderARun(t *testing.T) {
	t.Parallel()
	checkpoint := func(r *rqv1.Run) {
		r.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}}
	}
	cases := map[string]struct {
		nodes   int // of each of the two domains; the Run fills two
		change  func(*rqv1.Run)
		phase   rqv1.RunPhase
		message string
		closed  map[rqv1.ClosureReason]int
	}{
		"room in the domain": {3, func(*rqv1.Run) {}, rqv1.RunRunning, "bound 16 GPUs",
			map[rqv1.ClosureReason]int{"": 4, rqv1.ClosedNodeFailure: 2}},
		"no room":                {2, func(*rqv1.Run) {}, rqv1.RunFailed, "could not be replaced", nil},
		"no room but in another": {2, checkpoint, rqv1.RunRunning, "bound 16 GPUs", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 2, c.nodes, 100)
			s.submit("train", 16, inPods(4), inGroups(16), c.change)
			s.await("train", rqv1.RunRunning, "bound 16 GPUs")
			s.settled() // by when the scheduler knows that the Run has started
			lost := s.podsOf("train")["train-0"].Spec.NodeName
			s.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost}})
			err := waitFor(t, "the rank is to be elsewhere", soon, func() error {
				for _, pod := range s.podsOf("train") {
					if pod.Spec.NodeName == lost {
						return fmt.Errorf("pod %s is on %s", pod.Name, lost)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%v after the node was deleted: %v", soon, err)
			}
			s.await("train", c.phase, c.message)
			s.settled()
			if c.closed != nil {
				if diff := cmp.Diff(c.closed, s.closures("train")); diff != "" {
					t.Error(diff)
				}
			}
			if c.phase == rqv1.RunRunning && strings.Contains(fmt.Sprint(s.nodesOf("train")), lost) {
				t.Errorf("it runs on %v", s.nodesOf("train"))
			}
		})
	}
}
