package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// classes has two PriorityClasses be created through kubectl, and returns their names.
func (s *site) classes() (high, low string) {
	s.t.Helper()
	high, low = s.namespace+"-high", s.namespace+"-low"
	s.class(high, 2000000)
	s.class(low, 1000000)
	return high, low
}

func (s *site) class(name string, value int) {
	s.t.Helper()
	s.t.Cleanup(func() {
		err := s.kube.SchedulingV1().PriorityClasses().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Error(err)
		}
	})
	mustCommand(s.t, s.ControlPlane, fmt.Sprintf("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"+
		"metadata: {name: %s}\nvalue: %d\nglobalDefault: false\n", name, value), "apply -f -")
}

// yaml is a Run of the site as a user writes it.
func (s *site) yaml(name string, gpus int, class, rest string) string {
	return fmt.Sprintf("apiVersion: rq.davidlangworthy.io/v1\nkind: Run\nmetadata: {name: %s, namespace: %s}\nspec:\n"+
		"  owner: %s\n  resources: {gpuType: %s, totalGPUs: %d, gpusPerPod: 8}\n  priorityClassName: %s\n%s", name,
		s.namespace, s.owner, s.flavor, gpus, class, rest)
}

// TestHotSwapOntoALowerPriority is what users of two PriorityClasses expect: there is neither a spare nor an idle node,
// a node under the Run of high priority fails, and its rank goes on where the Run of low priority was.
func TestHotSwapOntoALowerPriority(t *testing.T) {
	t.Parallel()
	for name, runtime := range map[string]string{"checkpoint": "  runtime: {checkpoint: 10m}\n", "none": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 1, 5, 100)
			high, low := s.classes()
			mustCommand(t, s.ControlPlane, s.yaml("hero", 24, high, ""), "runs submit -f -")
			mustCommand(t, s.ControlPlane, s.yaml("batch", 16, low, runtime), "runs submit -f -")
			s.await("hero", rqv1.RunRunning, "bound 24 GPUs")
			s.await("batch", rqv1.RunRunning, "bound 16 GPUs")
			wide := mustCommand(t, s.ControlPlane, "", "runs list -o wide -n "+s.namespace)
			if !strings.Contains(wide, "2000000 ("+high+")") || !strings.Contains(wide, "1000000 ("+low+")") {
				t.Errorf("the list shows no priorities:\n%s", wide)
			}
			s.ranFor("batch", 2*time.Second)
			before, batch := s.podsOf("hero"), s.podsOf("batch")
			began := time.Now()
			mustCommand(t, s.ControlPlane, "", "taint node "+before["hero-1"].Spec.NodeName+
				" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
			s.swappedOnto("hero", before, "hero-1", batch)
			t.Logf("from sign to bound: %s", time.Since(began))
			phase, after := rqv1.RunFailed, "it declares no checkpoint"
			if runtime != "" {
				phase, after = rqv1.RunPending, "a lost rank"
			}
			if run := s.await("batch", phase, ""); phase == rqv1.RunFailed && !strings.Contains(run.Status.Message, after) {
				t.Errorf("batch says: %s", run.Status.Message)
			}
			eventually(t, "batch's Leases", func() error {
				return differs(map[rqv1.ClosureReason]int{rqv1.ClosedPriorityPreempt: 2}, s.closures("batch"))
			})
			if diff := cmp.Diff(map[rqv1.ClosureReason]int{"": 3, rqv1.ClosedNodeFailure: 1}, s.closures("hero")); diff != "" {
				t.Errorf("hero's Leases (-want +got):\n%s", diff)
			}
			told := mustCommand(t, s.ControlPlane, "", "runs explain batch -n "+s.namespace)
			for _, want := range []string{"PriorityPreempt", "for a lost rank of Run " + s.namespace + "/hero",
				"priority 1000000 (" + low + ")"} {
				if !strings.Contains(told, want) {
					t.Errorf("explain does not say %q:\n%s", want, told)
				}
			}
			s.settled()
		})
	}
}

// ranFor waits until a Run has run for a while: its status tells in whole seconds since when.
func (s *site) ranFor(name string, least time.Duration) {
	s.t.Helper()
	eventually(s.t, "Run "+name+" has run for "+least.String(), func() error {
		run, err := s.get(name)
		if err != nil {
			return err
		}
		if at, runs := run.StartedAt(); !runs || time.Since(at) < least {
			return fmt.Errorf("it is %s since %s", run.Status.Phase, at)
		}
		return nil
	})
}

// swappedOnto waits until a rank runs where a pod of another Run was. The other ranks are not touched.
func (s *site) swappedOnto(run string, before map[string]corev1.Pod, rank string, others map[string]corev1.Pod) {
	s.t.Helper()
	nodes := map[string]bool{}
	for _, other := range others {
		nodes[other.Spec.NodeName] = true
	}
	eventually(s.t, "the rank runs elsewhere", func() error {
		if moved := s.podsOf(run)[rank]; moved.UID == before[rank].UID || !nodes[moved.Spec.NodeName] {
			return fmt.Errorf("it is on %q", moved.Spec.NodeName)
		}
		return nil
	})
	for name, pod := range s.podsOf(run) {
		if (pod.UID == before[name].UID) == (name == rank) {
			s.t.Errorf("pod %s is still the same: %v", name, pod.UID == before[name].UID)
		}
	}
}

// TestPriorityClassesThatComeAndGo has Runs name a class that does not exist: the CLI refuses them; of one that comes
// another way a condition says so, until there is the class, whose value follows.
func TestPriorityClassesThatComeAndGo(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 100)
	class := s.namespace + "-late"
	run := s.yaml("early", 8, class, "")
	if said := command(t, s.ControlPlane, run, "runs submit -f -"); said.code == 0 ||
		!strings.Contains(said.err, "spec.priorityClassName is "+class) {
		t.Errorf("submit: code %d: %s", said.code, said.err)
	}
	mustCommand(t, s.ControlPlane, run, "apply -f -")
	has := func(missing bool, priority int32) {
		t.Helper()
		eventually(t, fmt.Sprintf("missing %v, priority %d", missing, priority), func() error {
			run, err := s.get("early")
			if err != nil {
				return err
			}
			got := meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionPriorityClassMissing)
			if got != missing || run.Status.Priority == nil || *run.Status.Priority != priority {
				return fmt.Errorf("missing %v, status %+v", got, run.Status)
			}
			return nil
		})
	}
	has(true, 0)
	s.class(class, 7)
	has(false, 7)
	mustCommand(t, s.ControlPlane, "", "delete priorityclass "+class)
	has(true, 0)
	s.class(class, -3)
	has(false, -3)
	if pod := s.podsOf("early")["early-0"]; pod.Spec.PriorityClassName != "" {
		t.Errorf("the pod has class %s", pod.Spec.PriorityClassName)
	}
	s.settled()
}
