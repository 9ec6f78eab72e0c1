package integration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestMaxDurationEndsARun lets Runs run past their maxDuration: they end, although they could be requeued, and give
// back what they held. One of them gets its maxDuration, and a checkpoint, while it runs.
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
	edited := func(after time.Duration) func(*rqv1.Run) {
		return func(r *rqv1.Run) {
			r.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: after},
				Checkpoint: &metav1.Duration{Duration: time.Minute}}
		}
	}
	edit(s, s.run("endless", 8), edited(time.Hour))
	edit(s, s.run("endless", 8), edited(2*time.Second))
	run = s.await("endless", rqv1.RunFailed, "ran for its maxDuration of 2s")
	if finished := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionFinished); finished == nil ||
		finished.Reason != rqv1.ReasonTimedOut {
		t.Errorf("endless: conditions %+v", run.Status.Conditions)
	}
	s.settled()
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
