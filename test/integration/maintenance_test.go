package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// TestSignsOfMaintenance: nothing new comes to a node whose conditions tell of maintenance without a date, as long as
// they do. What annotations say that nobody understands is told on the node, and counts for nothing.
func TestSignsOfMaintenance(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 100)
	node := s.namespace + "-d0-0"
	show := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) {
		eventually(t, "setting a condition", func() error {
			n := &corev1.Node{}
			if err := s.api.Get(t.Context(), client.ObjectKey{Name: node}, n); err != nil {
				return err
			}
			n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == kind
			})
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, Reason: "Test"})
			return s.api.Status().Update(t.Context(), n)
		})
	}
	for i, kind := range []corev1.NodeConditionType{"CSPMaintenance", corev1.NodeMaintenancePlanned,
		corev1.NodeDrainInProgress} {
		show(kind, corev1.ConditionTrue)
		if out := s.runs("maintenance list"); !strings.Contains(out, string(kind)) {
			t.Errorf("kubectl runs maintenance list does not tell of %s:\n%s", kind, out)
		}
		run := fmt.Sprintf("run-%d", i)
		s.submit(run, 8)
		s.await(run, rqv1.RunPending, "short by 8")
		show(kind, corev1.ConditionFalse)
		s.await(run, rqv1.RunRunning, "bound 8 GPUs")
		show(kind, corev1.ConditionTrue)
		eventually(t, "its owner is to see it", func() error { return s.ahead(run, "condition "+string(kind)) })
		show(kind, corev1.ConditionFalse)
		s.removeRun(run)
		eventually(t, "its pod is to be gone", func() error {
			if pods := s.podsOf(run); len(pods) > 0 {
				return fmt.Errorf("%d are left", len(pods))
			}
			return nil
		})
	}
	edit(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		n.Annotations[rqv1.AnnotationMaintenanceStart] = "tomorrow"
	})
	eventually(t, "an event on the node", func() error {
		return s.nodeTold(node, "MaintenanceIgnored", "write it as 2030-01-02T15:00:00Z")
	})
	s.submit("anyway", 8)
	s.await("anyway", rqv1.RunRunning, "bound 8 GPUs")
	s.settled()
}
