package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// TestAStuckRunCanBeTakenAway has the scheduler print all that it decides on for a Run that waits, and makes the
// decision again from that alone: there is nothing to write, and without what was written it is written again.
func TestAStuckRunCanBeTakenAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 2000000)
	s.submit("fits", 8)
	s.await("fits", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("stuck", 8)
	waits := s.await("stuck", rqv1.RunPending, "short by 8")
	var o lifecycle.Observed
	eventually(t, "an observation of the Run as it is", func() error {
		o = lifecycle.Observed{}
		if err := json.Unmarshal([]byte(s.runs("explain stuck --debug -n "+s.namespace)), &o); err != nil {
			t.Fatal(err)
		}
		if d := lifecycle.Decide(o); d.Status != nil || len(d.Create)+len(d.Delete)+len(d.Close) > 0 {
			return fmt.Errorf("something is still to be written: %+v", d)
		}
		return nil
	})
	if o.Run.UID != waits.UID || o.Refusal == nil || o.Refusal.Reason != "InsufficientGPUs" {
		t.Fatalf("the observation is of %v, refused with %+v", o.Run.UID, o.Refusal)
	}
	written := o.Run.Status
	o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunPending, Conditions: written.Conditions}
	again := lifecycle.Decide(o).Status
	if again == nil {
		t.Fatal("nothing is decided without what was written")
	}
	if diff := cmp.Diff([]any{written.Message, written.Refusal}, []any{again.Message, again.Refusal}); diff != "" {
		t.Errorf("decided again (-written +again):\n%s", diff)
	}
	unknown := command(t, s.ControlPlane, "", "runs explain nothing --debug -n "+s.namespace)
	if unknown.code == 0 || !strings.Contains(unknown.err, "the scheduler does not know Run "+s.namespace+"/nothing") {
		t.Errorf("of a Run that there is not: %+v", unknown)
	}
	s.settled()
}
