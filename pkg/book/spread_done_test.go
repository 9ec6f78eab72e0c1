package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// A pod that comes after one that has completed goes where the rule lets it by which the group is spread, and shards on
// a node that the rule keeps it from stay.
func TestAPodAfterADoneOneIsSpread(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.controllers.spread = &corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.DoNotSchedule}
		s.submitWithSpares("run00", "org:a", 1, 2, 4, 0, ungrouped, theirs)
		s.work()
		s.running("run00", "although there is a node for each pod")
		s.sweep("shards", "org:b", 8, 1)
		s.work()
		s.during(time.Minute)
		uid, on := s.Runs["run00"].UID, ""
		s.succeeds("run00", 0)
		s.work()
		s.controllers.next[uid]++
		s.work()
		s.during(10 * time.Second)
		s.work()
		for _, pod := range s.Slots(uid)[2] {
			on = pod.Spec.NodeName
		}
		if done := s.Slots(uid)[0][0].Spec.NodeName; on != done {
			s.t.Errorf("the next pod is on %q, want %s: %s", on, done, s.Runs["run00"].Status.Message)
		}
		if diff := cmp.Diff(map[string]int{"open Start Borrowed": 8}, s.ledger("shards")); diff != "" {
			s.t.Errorf("Leases of shards (-want +got):\n%s", diff)
		}
		if said := s.Book.LeftAlone(uid); len(said) > 0 {
			s.t.Errorf("it leaves nodes alone: %v", said)
		}
	})
}
