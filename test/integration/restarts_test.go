package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// exits is the status of a pod whose program has ended with an exit code and a last word.
func exits(code int32, word string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "pause", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: word,
			FinishedAt: metav1.Now()}}}}}
}

// restarts says how often a Run is started again, and by which exit codes it is not, or elsewhere.
func restarts(limit int32, codes map[string]rqv1.RestartAction) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		checkpoint(time.Hour)(r)
		r.Spec.Runtime.Restarts = &rqv1.RunRestarts{Limit: &limit, OnExitCodes: codes}
	}
}

// restarted waits until a Run says how often it was restarted, and all of it runs.
func (s *site) restarted(name string, words ...string) *rqv1.Run {
	s.t.Helper()
	var out *rqv1.Run
	eventually(s.t, "the Run is to have been restarted", func() error {
		run, err := s.get(name)
		if err != nil {
			return err
		}
		for _, word := range words {
			if !strings.Contains(run.Status.Message, word) {
				return fmt.Errorf("it is %s: %q does not say %q", run.Status.Phase, run.Status.Message, word)
			}
		}
		tells := run.Status.Restarts
		if tells == nil || tells.Ready == nil || run.Status.Width.Allocated != run.Spec.Resources.TotalGPUs {
			return fmt.Errorf("it has %d GPUs; %+v", run.Status.Width.Allocated, tells)
		}
		out = run
		return nil
	})
	return out
}

// TestAProgramThatDiesAtOnce dies before all of its Run is bound, or soon after.
func TestAProgramThatDiesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("hasty", 32, inPods(4), restarts(1, nil), annotated("pod-fail.stage.kwok.x-k8s.io/delay", "1ms"))
	s.await("hasty", rqv1.RunFailed, "rank")
	s.settled()
}

// TestAPoisonNodeUnderTwoRuns has ranks of two owners die on one node: it is suspect, and avoided while there is
// another.
func TestAPoisonNodeUnderTwoRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 100)
	s.submit("one", 4, inPods(4), checkpoint(time.Hour))
	s.await("one", rqv1.RunRunning, "bound 4 GPUs")
	s.submit("two", 4, inPods(4), s.by("another"))
	s.await("two", rqv1.RunRunning, "bound 4 GPUs")
	bad := s.podsOf("one")["one-0"].Spec.NodeName
	if on := s.podsOf("two")["two-0"].Spec.NodeName; on != bad {
		t.Fatalf("they are on %s and %s, want them together", bad, on)
	}
	s.ends("one-0", exits(1, "Xid 79"))
	s.restarted("one", "restart 1 of 3")
	s.ends("two-0", exits(1, "Xid 79"))
	s.await("two", rqv1.RunFailed, "")
	eventually(t, "the node is to be suspect", func() error {
		out := s.runs("nodes")
		for _, line := range strings.Split(out, "\n") {
			if strings.HasPrefix(line, bad+" ") && strings.Contains(line, "Suspect") && strings.Contains(line, "TwoOwners") {
				return nil
			}
		}
		return fmt.Errorf("the command says:\n%s", out)
	})
	s.submit("three", 4, inPods(4))
	s.await("three", rqv1.RunRunning, "bound 4 GPUs")
	if on := s.podsOf("three")["three-0"].Spec.NodeName; on == bad {
		t.Errorf("who comes next is on %s too", on)
	}
	if out := s.runs("nodes clear " + bad); !strings.Contains(out, "node "+bad+" is cleared") {
		t.Errorf("the command says %q", out)
	}
	s.submit("four", 4, inPods(4))
	s.await("four", rqv1.RunRunning, "bound 4 GPUs")
	if on := s.podsOf("four")["four-0"].Spec.NodeName; on != bad {
		t.Errorf("who comes once it is cleared is on %s, want %s", on, bad)
	}
	s.settled()
}

// runOf returns the Run that a rank's pod is called after.
func (s *site) runOf(pod string) string { return pod[:strings.LastIndex(pod, "-")] }
