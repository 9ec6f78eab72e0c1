package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestMaxDurationEndsARun lets Runs run past their maxDuration: they end, although they could be requeued, and give
// back what they held. One of them gets its maxDuration, a checkpoint, and that it waits again, while it runs: who
// waits comes before it then.
func TestMaxDurationEndsARun(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 3, 24)
	s.submit("brief", 16, inPods(8), withSpares(8), func(r *rqv1.Run) {
		r.Spec.Runtime = &rqv1.RunRuntime{
			MaxDuration: &metav1.Duration{Duration: 3 * time.Second}, Checkpoint: &metav1.Duration{Duration: time.Second},
		}
	})
	s.await("brief", rqv1.RunRunning, "bound 16 GPUs")
	run := s.await("brief", rqv1.RunFailed, "ran for its maxDuration of 3s")
	started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	finished := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionFinished)
	if started == nil || finished == nil || finished.Reason != rqv1.ReasonTimedOut {
		t.Fatalf("conditions %+v", run.Status.Conditions)
	}
	if took := finished.LastTransitionTime.Sub(started.LastTransitionTime.Time); took < 3*time.Second {
		t.Errorf("it ran for %s", took)
	}
	s.settled()
	if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedFailed: 3}, s.closures("brief")); diff != "" {
		t.Error(diff)
	}
	ends := map[string]string{}
	for name, pod := range s.podsOf("brief") {
		ends[name] = string(pod.Status.Phase) + " " + pod.Status.Reason
	}
	want := map[string]string{"brief-0": "Failed DeadlineExceeded", "brief-1": "Failed DeadlineExceeded"}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Errorf("what ranks have printed stays, and its spare goes (-want +got):\n%s", diff)
	}
	if run, err := s.get("brief"); err != nil || is(run, rqv1.RunFailed, "ran for its maxDuration of 3s") != nil {
		t.Errorf("later it is %s: %s (%v)", run.Status.Phase, run.Status.Message, err)
	}

	s.submit("endless", 8, inPods(8))
	s.await("endless", rqv1.RunRunning, "bound 8 GPUs")
	edited := func(after time.Duration, then rqv1.TimeoutAction) func(*rqv1.Run) {
		return func(r *rqv1.Run) {
			r.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: after},
				Checkpoint: &metav1.Duration{Duration: time.Minute}, OnTimeout: then}
		}
	}
	edit(s, s.run("endless", 8), edited(time.Hour, ""))
	s.submit("next", 24, inPods(8))
	s.await("next", rqv1.RunPending, "short by")
	edit(s, s.run("endless", 8), edited(time.Minute, rqv1.TimeoutRequeue))
	s.await("next", rqv1.RunRunning, "bound 24 GPUs")
	s.waitsAgain("endless")
	edit(s, s.run("endless", 8), edited(time.Second, rqv1.TimeoutFail))
	s.removeRun("next")
	run = s.await("endless", rqv1.RunFailed, "ran for its maxDuration of 1s")
	twice := map[rqv1.ClosureReason]int{rqv1.ClosedTimedOut: 1, rqv1.ClosedFailed: 1}
	eventually(t, "how endless ended, twice", func() error { return differs(twice, s.closures("endless")) })
	if run.Status.Attempt != 1 || run.Status.Timeouts == nil || run.Status.Timeouts.Count != 1 {
		t.Errorf("endless ended in attempt %d, with %+v", run.Status.Attempt, run.Status.Timeouts)
	}
	s.settled()
}

// waitsAgain asserts that a Run tells everywhere that its time is over, and since when it has its place in line.
func (s *site) waitsAgain(name string) {
	s.t.Helper()
	run, err := s.get(name)
	if err != nil {
		s.t.Fatal(err)
	}
	is := &run.Status
	if is.Timeouts == nil || is.Timeouts.Count != 1 || is.Phase != rqv1.RunPending || is.Attempt != 1 ||
		!is.PlaceSince.Equal(&is.Timeouts.Last) {
		s.t.Fatalf("it is %+v", is)
	}
	const told = "it starts again from its checkpoint, and has its place in line since"
	eventually(s.t, "what the events say", func() error {
		return differs(map[string]int32{"Pending: " + told: 1}, s.eventsOf("Run", name, told))
	})
	explained := s.runs("explain " + name + " -n " + s.namespace)
	for _, want := range []string{"attempt: number 2; its maxDuration was over 1 time, last at ", "counts from ",
		"Released:\n  8 GPUs (TimedOut, 1 GPU lease)"} {
		if !strings.Contains(explained, want) {
			s.t.Errorf("explain lacks %q:\n%s", want, explained)
		}
	}
}

// TestMalleableRunStarts starts a malleable Run at its total.
func TestMalleableRunStarts(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 64)
	s.submit("elastic", 16, func(r *rqv1.Run) {
		r.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 8, MaxTotalGPUs: 32, StepGPUs: 4}
	})
	run := s.await("elastic", rqv1.RunRunning, "bound 16 GPUs")
	if diff := cmp.Diff(&rqv1.RunWidth{Min: 8, Max: 32, Desired: 32, Granted: 16, Allocated: 16},
		run.Status.Width); diff != "" {
		t.Error(diff)
	}
	for _, pod := range s.podsOf("elastic") {
		for _, variable := range pod.Spec.Containers[0].Env {
			if variable.Name == "PET_NNODES" && variable.Value != "2:8" {
				t.Errorf("pod %s: PET_NNODES is %s, want 2:8", pod.Name, variable.Value)
			}
		}
	}
	s.settled()
}
