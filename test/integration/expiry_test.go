package integration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// staysFor has a Run stay for some seconds after its end.
func staysFor(seconds int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.TTLSecondsAfterFinished = &seconds }
}

// TestFinishedRunsGo when their time is over: their own, that of the configuration, or one that they were given since
// they ended, whatever the scheduler went through meanwhile. Who pays for them stays known.
func TestFinishedRunsGo(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"finishedRunTTL": "5s"}), 1, 4, 32)
	s.startScheduler()
	brief := annotated("pod-complete.stage.kwok.x-k8s.io/delay", "1s")
	s.submit("soon", 8, brief, staysFor(0))
	s.submit("later", 8, brief)
	s.submit("edited", 8, brief, staysFor(3600))
	s.submit("stays", 8, brief, staysFor(3600))
	ended := s.await("later", rqv1.RunCompleted, "completed")
	s.killAfter(0)
	edited := s.await("edited", rqv1.RunCompleted, "completed")
	s.await("stays", rqv1.RunCompleted, "completed")
	s.awaitGone("soon")
	s.awaitGone("later")
	if finished, _ := ended.FinishedAt(); time.Since(finished) < 5*time.Second {
		t.Errorf("a Run is gone %s after its end", time.Since(finished))
	}
	edit(s, edited, func(r *rqv1.Run) { r.Spec.TTLSecondsAfterFinished = ptr.To[int32](1) })
	s.awaitGone("edited")
	s.await("stays", rqv1.RunCompleted, "completed")
	for _, run := range []string{"soon", "later", "edited", "stays"} {
		if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedCompleted: 1}, s.closures(run)); diff != "" {
			t.Errorf("GPU leases of %s (-want +got):\n%s", run, diff)
		}
	}
	s.submit("later", 32) // its name and its GPUs are free
	s.await("later", rqv1.RunRunning, "bound 32 GPUs")
	s.settled()
	s.audit(0)
}
