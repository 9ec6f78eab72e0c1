package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// maintains announces that a node is out of service from an instant on, for a while; for none it takes that back.
func (s *storm) maintains(node string, from, during time.Duration) {
	s.announce(node, from, during)
	s.work()
}

func (s *storm) announce(node string, from, during time.Duration) {
	s.disturb()
	start := s.Now.Add(from).UTC()
	s.change(node, func(n *corev1.Node) {
		n.Annotations = map[string]string{}
		if during > 0 {
			n.Annotations[rqv1.AnnotationMaintenanceStart] = start.Format(time.RFC3339Nano)
			n.Annotations[rqv1.AnnotationMaintenanceEnd] = start.Add(during).Format(time.RFC3339Nano)
		}
	})
}

// shows has a node show a condition, or show it no more.
func (s *storm) shows(node string, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	s.change(node, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: kind, Status: status}}
	})
	s.work()
}

// runsOn returns the node of a Run's first rank; "" while it has none.
func (s *storm) runsOn(run string) string {
	for _, uid := range s.SortedPods() {
		if pod := s.Pods[uid]; pod.Name == run+"-0" {
			return pod.Spec.NodeName
		}
	}
	return ""
}

// at asserts where a Run is.
func (s *storm) at(run, node string) {
	s.t.Helper()
	if got := s.runsOn(run); got != node {
		s.t.Fatalf("%s is on %q, want %q; it is refused for %+v", run, got, node, s.Book.Refusal(s.Runs[run].UID))
	}
}

// A Run waits that would be on a node when its maintenance starts, and has a date: when that is over. Another that ends
// before it starts does not.
func TestARunWaitsForMaintenance(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.maintains("n0", time.Minute, time.Minute)
		over := s.Now.Add(2 * time.Minute)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.at("run0", "")
		run := s.Runs["run0"].UID
		if p := s.Book.Prospect(run).Promise; p == nil || !p.At.Equal(over) {
			s.t.Fatalf("run0 is promised %+v, want %s", p, over)
		}
		if r := s.Book.Refusal(run); r == nil || !strings.Contains(r.Message, "n0: maintenance from ") {
			s.t.Fatalf("run0 is refused for %+v", r)
		}
		s.submitWithSpares("run1", "org:a", 1, 1, 8, 0, lasting(30*time.Second))
		s.work()
		s.at("run1", "n0")
		s.at("run0", "")
		s.DeleteRun("run1")
		s.work()
		s.during(over.Sub(s.Now) - time.Second)
		s.work()
		s.at("run0", "")
		if next, ok := s.Book.Next(s.Now); !ok || next.After(over) {
			s.t.Fatalf("the book sleeps until %s, %v; the node is back at %s", next, ok, over)
		}
		s.during(time.Second)
		s.Book.Advance(s.Now)
		s.work()
		s.at("run0", "n0")
	})
}

// A Run that waits starts when it is told that there is no maintenance, or when the node shows no sign of it any more.
func TestMaintenanceIsCalledOff(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		for i, kind := range []corev1.NodeConditionType{"", "CSPMaintenance", corev1.NodeMaintenancePlanned,
			corev1.NodeDrainInProgress} {
			run := "run" + string(rune('0'+i))
			if kind == "" {
				s.maintains("n0", time.Minute, time.Hour)
			} else {
				s.shows("n0", kind, corev1.ConditionTrue)
			}
			s.submit(run, "org:a", 1, 1, 8)
			s.work()
			s.at(run, "")
			if kind == "" {
				s.maintains("n0", 0, 0)
			} else {
				s.shows("n0", kind, corev1.ConditionFalse)
			}
			s.at(run, "n0")
			s.DeleteRun(run)
			s.work()
		}
	})
}

// Whoever runs on a node when its maintenance is announced stays, and so does its spare, which may serve it.
func TestWhoIsThereStays(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		s.work()
		was := s.runsOn("run0")
		for _, node := range []string{"n0", "n1"} {
			s.maintains(node, time.Hour, time.Hour)
		}
		s.at("run0", was)
		s.loseRank("run0-0")
		s.work()
		if now := s.runsOn("run0"); now == was || now == "" {
			s.t.Fatalf("run0 was on %s, which is lost, and is on %q", was, now)
		}
	})
}
