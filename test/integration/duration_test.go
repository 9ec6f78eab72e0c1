package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

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
