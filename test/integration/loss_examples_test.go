package integration

import (
	"fmt"
	"strings"
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestALostNodeAfterTheLottery is T4 of worked example 1, when J1 was drawn: J2 has 24 GPUs beside J3 and J4, somebody
// uses the room that is left, a node of J2 fails, and J2 shrinks by a step.
func TestALostNodeAfterTheLottery(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("d", 18, 4)
	s.fund("a", s.envelope("all", 48))
	s.fund("b", s.envelope("all", 56))
	s.submit("j2", 24, s.by("b"), malleable(8, 24, 8))
	s.await("j2", rqv1.RunRunning, "bound 24 GPUs")
	s.submit("j3", 2, s.by("a"))
	s.submit("j4", 32, s.by("b"))
	s.submit("rest", 14, s.by("a"), inPods(2))
	for run, gpus := range map[string]int{"j3": 2, "j4": 32, "rest": 14} {
		s.await(run, rqv1.RunRunning, fmt.Sprintf("bound %d GPUs", gpus))
	}
	s.settled()
	before := s.podsOf("j2")
	others := []map[string]string{s.versions("j3"), s.versions("j4"), s.versions("rest")}
	s.strike(before["j2-0"].Spec.NodeName)
	s.await("j2", rqv1.RunRunning, "shrunk to 16 GPUs")
	eventually(t, "J2's Leases", func() error {
		return differs(map[rqv1.ClosureReason]int{"": 4, rqv1.ClosedNodeFailure: 1, rqv1.ClosedShrink: 2}, s.closures("j2"))
	})
	s.settled()
	for name, pod := range s.podsOf("j2") {
		if same := pod.UID == before[name].UID; same == (name == "j2-0") {
			t.Errorf("pod %s is still the same: %v", name, same)
		}
	}
	same(t, "the other Runs", others, []map[string]string{s.versions("j3"), s.versions("j4"), s.versions("rest")})
}

// swapsOnA is T3 of worked example 2: shards use the GPUs under RA1's spares on A, a node of RA1 fails, and the shards
// on the spare that takes its place give way.
func (s *site) swapsOnA() {
	s.t.Helper()
	s.submit("sweep", 16, s.by("ai:mm:aud"), s.on("a"), inPods(2), opportunistic)
	on := s.shards("sweep", 4)
	before := s.podsOf("ra1")
	s.strike(before["ra1-3"].Spec.NodeName)
	s.await("ra1", rqv1.RunRunning, swappedMessage)
	spare := strings.TrimPrefix(s.podsOf("ra1")["ra1-3"].Spec.NodeName, s.namespace+"-")
	if on[spare] != 2 {
		s.t.Errorf("rank 3 is on %s, where no spare with shards was: %v", spare, on)
	}
	delete(on, spare)
	same(s.t, "where shards run", on, s.shards("sweep", 2))
	eventually(s.t, "why the shards ended", func() error {
		return s.borrowed("sweep", map[rqv1.ClosureReason]int{"": 2, rqv1.ClosedReclaimedBySpare: 2})
	})
	eventually(s.t, "RA1's Leases", func() error {
		return differs(map[rqv1.ClosureReason]int{"": 17, rqv1.ClosedNodeFailure: 1, rqv1.ClosedSwap: 1}, s.closures("ra1"))
	})
	for name, pod := range s.podsOf("ra1") {
		if role := pod.Labels[rqv1.LabelRole]; role == string(rqv1.RoleActive) &&
			(pod.UID == before[name].UID) == (name == "ra1-3") {
			s.t.Errorf("pod %s is still the same: %v", name, pod.UID == before[name].UID)
		}
	}
}
