package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ahead is an error unless a Run says of maintenance ahead what it should: nothing true if that is empty.
func (s *site) ahead(run, says string) error {
	r, err := s.get(run)
	if err != nil {
		return err
	}
	c := meta.FindStatusCondition(r.Status.Conditions, rqv1.ConditionMaintenanceAhead)
	if is := c != nil && c.Status == metav1.ConditionTrue; is != (says != "") || is && !strings.Contains(c.Message, says) {
		return fmt.Errorf("its condition is %+v, want %q", c, says)
	}
	return nil
}

// TestMaintenanceOfARack announces maintenance of a rack: whoever is there stays and is told the date; nobody comes who
// might still be there when it starts; whoever waits is promised the rack for when it is over, and starts then.
func TestMaintenanceOfARack(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	rack := "fabric.domain=" + s.namespace + "-d0"
	s.submit("there", 8)
	s.await("there", rqv1.RunRunning, "bound 8 GPUs")
	start := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	over := start.Add(time.Hour)
	s.runs(fmt.Sprintf("maintenance set -l %s --start %s --for 1h", rack, start.Format(time.RFC3339)))
	eventually(t, "its owner is to see the date", func() error {
		return s.ahead("there", "maintenance from "+start.Format(time.RFC3339)+" to "+over.Format(time.RFC3339))
	})
	for _, line := range []string{"list -o wide -n ", "plan there -n "} {
		if out := s.runs(line + s.namespace); !strings.Contains(out, start.Local().Format("15:04")) {
			t.Errorf("kubectl runs %s does not tell the date:\n%s", line, out)
		}
	}
	if out := s.runs("maintenance list"); strings.Count(out, s.namespace) != 2 || !strings.Contains(out, "Ahead") {
		t.Errorf("kubectl runs maintenance list:\n%s", out)
	}

	s.submit("long", 8, lasting(2*time.Hour))
	run := s.await("long", rqv1.RunPending, "maintenance from "+start.Format(time.RFC3339))
	s.submit("brief", 8, lasting(20*time.Minute))
	s.await("brief", rqv1.RunRunning, "bound 8 GPUs")
	eventually(t, "it is to be promised the rack for when the maintenance is over", func() (err error) {
		run, err = s.get("long")
		if at := run.Status.EarliestStart; err != nil || at == nil || !at.Time.Equal(over) {
			return fmt.Errorf("it starts at %v, want %s: %w", at, over, err)
		}
		return nil
	})

	s.removeRun("brief")
	end := time.Now().UTC().Truncate(time.Second).Add(5 * time.Second)
	other := s.otherNode("there")
	s.runs(fmt.Sprintf("maintenance set %s --start 0s --end %s", other, end.Format(time.RFC3339)))
	s.await("long", rqv1.RunRunning, "bound 8 GPUs")
	if now := time.Now(); now.Before(end) {
		t.Errorf("it started %s before the maintenance was over", end.Sub(now))
	}
	if err := s.ahead("long", ""); err != nil {
		t.Error(err)
	}
	s.runs("maintenance cancel -l " + rack)
	eventually(t, "its owner is to see that there is none", func() error { return s.ahead("there", "") })
	s.settled()
}

// otherNode returns the node of a site of two on which a Run is not.
func (s *site) otherNode(run string) string {
	s.t.Helper()
	on := s.nodesOf(run)
	for _, name := range []string{"d0-0", "d0-1"} {
		if on[name] == 0 {
			return s.namespace + "-" + name
		}
	}
	s.t.Fatalf("%s is on %v", run, on)
	return ""
}
