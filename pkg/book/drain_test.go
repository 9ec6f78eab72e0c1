package book_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// cordons has nobody new come to a node, or somebody again.
func (s *storm) cordons(node string, cordoned bool) {
	s.change(node, func(n *corev1.Node) { n.Spec.Unschedulable = cordoned })
	s.work()
}

// asked asserts which ranks of a Run are asked to move, on which nodes, and whether that waits for something.
func (s *storm) askedToMove(run, want string) {
	s.t.Helper()
	s.Book.Assess(s.Runs[run].UID, s.Now)
	look, _ := s.Book.Look(book.Objects{
		Name: types.NamespacedName{Namespace: "ns", Name: run}, Run: s.Runs[run]})
	var got []string
	for _, r := range look.Drain.Ranks {
		got = append(got, fmt.Sprintf("%d@%s", r.Index, r.Node))
	}
	if look.Drain.Why != "" {
		got = append(got, "waits")
	}
	if text := strings.Join(got, " "); text != want {
		s.t.Fatalf("%s is asked to move %q (%s), want %q", run, text, look.Drain.Why, want)
	}
}

// A rank whose node is emptied has its spare's place, or free GPUs that nobody else is given meanwhile, or waits.
func TestARankIsAskedToMove(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, node := range []string{"n0", "n1", "n2"} {
			s.addNode(node, "d0")
		}
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 64)
		s.submit("run0", "org:a", 1, 2, 8)
		s.work()
		s.askedToMove("run0", "")
		on := s.runsOn("run0")
		s.cordons(on, true)
		s.askedToMove("run0", "0@"+on)
		s.submit("run1", "org:b", 1, 1, 8) // which is not given what is kept
		s.work()
		s.at("run1", "")
		s.askedToMove("run0", "0@"+on)
		s.cordons(on, false)
		s.askedToMove("run0", "")
		if s.work(); s.runsOn("run1") == "" {
			s.t.Fatalf("run1 is refused for %+v", s.Book.Refusal(s.Runs["run1"].UID))
		}
		s.cordons(on, true)
		s.askedToMove("run0", "0@"+on+" waits")
		if stuck := s.Book.StuckDrains(); len(stuck) != 1 || stuck[0].Node != on || stuck[0].Run != "ns/run0" {
			s.t.Fatalf("%+v", stuck)
		}
		s.DeleteRun("run1")
		s.work()
		s.askedToMove("run0", "0@"+on)
		s.lose("run0-0") // it has been evicted
		if now := s.runsOn("run0"); now == "" || now == on {
			s.t.Fatalf("run0 is on %q, and was on %s", now, on)
		}
		s.askedToMove("run0", "")
	})
}

// What is kept for a rank that is to move is others' once its Run is gone.
func TestARunThatIsGoneMovesNoRank(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.addNode("n1", "d0")
		s.cordons("n0", true)
		s.askedToMove("run0", "0@n0")
		s.DeleteRun("run0")
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.at("run1", "n1")
	})
}

// Of two ranks of a group whose nodes are emptied the first has the spare's place, and then the other waits.
func TestTwoRanksAreAskedToMove(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, node := range []string{"n0", "n1", "n2"} {
			s.addNode(node, "d0")
		}
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 1)
		s.work()
		first := s.Pods[s.pod("run0-0")].Spec.NodeName
		second := s.Pods[s.pod("run0-1")].Spec.NodeName
		s.cordons(first, true)
		s.cordons(second, true)
		s.askedToMove("run0", "0@"+first+" 1@"+second)
		s.lose("run0-1")
		s.work()
		s.askedToMove("run0", "0@"+first+" waits")
	})
}
