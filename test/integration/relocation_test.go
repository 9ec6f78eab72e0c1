package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestRanksLeaveARackBeforeItsMaintenance announces maintenance of the nodes of a Run's ranks, and of another Run's
// that has nowhere to go. The former have left before it starts, one for the spare and one for a free node, and nobody
// else was touched for it; the latter stays, and its owner and the node say so.
func TestRanksLeaveARackBeforeItsMaintenance(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"gangDeadline": "30s", "noticePeriod": "5s"}), 1, 5, 100)
	s.startScheduler()
	s.submit("train", 16, inPods(8), inGroups(16), withSpares(8))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	theirs := s.budget(s.namespace+"-b", 100)
	theirs.Spec.Owner = "org:others"
	s.create(theirs)
	s.submit("other", 8, inPods(8), func(r *rqv1.Run) { r.Spec.Owner = "org:others" })
	s.await("other", rqv1.RunRunning, "bound 8 GPUs")
	s.load(*s.node("d1-0", "d1"))
	s.submit("stuck", 8, inPods(8), inGroups(8), func(r *rqv1.Run) {
		template(r).Spec.NodeSelector = map[string]string{"fabric.domain": s.namespace + "-d1"}
	})
	s.await("stuck", rqv1.RunRunning, "bound 8 GPUs")
	before := s.podsOf("train")
	other, stuck := s.podsOf("other")["other-0"], s.podsOf("stuck")["stuck-0"]
	rack := []string{before["train-0"].Spec.NodeName, before["train-1"].Spec.NodeName, stuck.Spec.NodeName}
	start := time.Now().UTC().Truncate(time.Second).Add(40 * time.Second)
	s.runs(fmt.Sprintf("maintenance set %s --start %s --for 1h", strings.Join(rack, " "), start.Format(time.RFC3339)))

	eventually(t, "both ranks are to have left the rack", func() error {
		pods := s.podsOf("train")
		for _, name := range []string{"train-0", "train-1"} {
			if on := pods[name].Spec.NodeName; on == "" || on == rack[0] || on == rack[1] {
				return fmt.Errorf("%s is on %q", name, on)
			}
		}
		return nil
	})
	if early := time.Until(start); early > 11*time.Second {
		t.Errorf("they had left %s before it starts, want 10 seconds or fewer", early)
	}
	for _, lease := range s.leasesOf("train") {
		late := time.Duration((s.canary.worst() - 1) * float64(10*time.Second))
		if slices.Contains(rack, lease.Node()) && lease.Status.Ended != nil && lease.Status.Ended.After(start.Add(late)) {
			t.Errorf("Lease %s has ended at %s, after the maintenance has begun at %s", lease.Name, lease.Status.Ended, start)
		}
	}
	eventually(t, "its message is to say so", func() error {
		run, err := s.get("train")
		if err != nil {
			return err
		}
		const swapped = "group 0 swapped to spare before maintenance of node "
		if !strings.HasPrefix(run.Status.Message, swapped) { // of the rank whose pod was gone first
			return fmt.Errorf("it says %s", run.Status.Message)
		}
		return nil
	})
	want := map[rqv1.ClosureReason]int{"": 2, rqv1.ClosedMaintenance: 2, rqv1.ClosedSwap: 1}
	if diff := cmp.Diff(want, s.closures("train")); diff != "" {
		t.Errorf("its Leases closed otherwise (-want +got):\n%s", diff)
	}
	for _, lease := range s.leasesOf("train") {
		if !lease.Status.Closed && lease.Spec.Reason != rqv1.ReasonSwap {
			t.Errorf("the Lease of a rank that has moved was opened for %s", lease.Spec.Reason)
		}
	}
	if s.podsOf("other")["other-0"].UID != other.UID || s.podsOf("stuck")["stuck-0"].UID != stuck.UID {
		t.Errorf("another Run was touched")
	}
	eventually(t, "its owner is to see that the other stays", func() error {
		return s.ahead("stuck", "ranks on "+rack[2]+" stay there until their nodes go out of service: rank 0 on node "+
			""+rack[2])
	})
	eventually(t, "an event on its node", func() error { return s.nodeTold(rack[2], "RanksStay", "neither a spare nor") })
	s.await("stuck", rqv1.RunRunning, "bound 8 GPUs")
	s.settled()
}
