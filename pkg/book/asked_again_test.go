package book_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// crowded has a Run's turn come on a full fleet, where other rules are asked.
func (s *storm) crowded() {
	s.asks(true)
	s.turnComes()
}

// uncut fails if anybody has been told to go.
func (s *storm) uncut() {
	s.t.Helper()
	s.running("holder", "although nothing is won by cutting it")
	for name, r := range s.Reservations {
		if len(r.Status.Cuts) > 0 || r.Status.ActivatedAt != nil {
			s.t.Fatalf("%s was activated: %+v", name, r.Status)
		}
	}
}

// Before others are told to go, other rules are asked about a Run's pods as the API server has admitted them: those
// that were made last may be kept off all nodes by what admission has written into them.
func TestNobodyIsCutForPodsThatOtherRulesKeepOff(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Turns = func(pod *corev1.Pod, _ string) string {
			if pod.Name == "wants-3" && s.Pods[pod.UID] != nil {
				return "node(s) had volume node affinity conflict"
			}
			return ""
		}
		s.crowded()
		asked := s.Asked
		s.later(time.Minute)
		s.uncut()
		if r := s.Book.Refusal(s.Runs["wants"].UID); r == nil || !strings.Contains(r.Message, "volume node affinity") {
			s.t.Fatalf("it is refused for %+v", r)
		}
		s.later(29 * time.Minute)
		s.uncut()
		if n := s.Asked - asked; n == 0 || n > 30 {
			s.t.Fatalf("rules were asked %d times in half an hour", n)
		}
		s.Turns = nil
		for n := 0; n < 120 && s.Runs["wants"].Status.Phase != rqv1.RunRunning; n++ {
			s.later(30 * time.Second)
		}
		s.running("wants", "although nothing stands in its way any more")
	})
}

// Shards stay until a Run's pods have been made and accepted.
func TestShardsStayUntilPodsAreAccepted(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Turns = func(pod *corev1.Pod, _ string) string {
			if pod.Name == "wants-1" && s.Pods[pod.UID] != nil {
				return "node(s) had volume node affinity conflict"
			}
			return ""
		}
		s.asks(true)
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("holder", "org:a", 1, 1, 4, 0, checkpointed)
		s.work()
		s.sweep("shards", "org:b", 4, 1)
		s.work()
		s.during(time.Minute)
		s.submit("wants", "org:b", 1, 2, 4)
		s.work()
		s.due()
		s.later(5 * time.Minute)
		s.uncut()
		if n := s.shards("shards")["n0"]; n != 4 {
			s.t.Fatalf("%d shards run", n)
		}
	})
}

// Where there is no time to ask about all places of a Run at once, they are asked about bit by bit: nobody is told
// before that is done, and then the Run starts.
func TestRulesAreAskedBitByBit(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Hurried = true
		asked := map[string]bool{} // before anybody is told
		s.Turns = func(pod *corev1.Pod, _ string) string {
			told := slices.ContainsFunc(slices.Collect(maps.Values(s.Reservations)), func(r *rqv1.Reservation) bool {
				return r.Status.ActivatedAt != nil
			})
			if !told && strings.HasPrefix(pod.Name, "wants") && s.Pods[pod.UID] != nil {
				asked[pod.Name] = true
			}
			return ""
		}
		s.crowded()
		s.later(90 * time.Second)
		s.running("wants", "although the holder may be cut for it")
		if len(asked) != 4 {
			s.t.Fatalf("rules were asked about %v alone before the holder was told", asked)
		}
		s.checkRecords()
	})
}

// What is found out bit by bit to be in the way is so.
func TestNobodyIsCutForWhatIsFoundOutLate(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Hurried = true
		s.Turns = func(pod *corev1.Pod, _ string) string {
			if pod.Name == "wants-3" {
				return "node(s) had volume node affinity conflict"
			}
			return ""
		}
		s.crowded()
		s.later(10 * time.Minute)
		s.uncut()
	})
}
