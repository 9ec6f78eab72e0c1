package book_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// spreadTurn has the turn come of a Run for which others are to make room in each of two full domains.
func (s *storm) spreadTurn() {
	s.asks(true)
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	for _, node := range []string{"d0-n00", "d0-n01", "d1-n00", "d1-n01"} {
		s.addNode(node, node[:2])
		s.submitWithSpares("holder-"+node, "org:a", 1, 1, 8, 0, checkpointed, pinnedTo(node))
	}
	s.work()
	s.during(time.Minute)
	s.submitWithSpares("wants", "org:b", 1, 4, 4, 0, spreadOver("fabric.domain", 1))
	s.work()
	s.due()
}

// turnsDown has some nodes turn a decision down for where the others are, or another for itself, and the rules would
// have its pods be on others, if on any.
func (s *storm) turnsDown(c *book.Check, skewed []string, other string, instead ...string) {
	var turned []book.Turning
	for _, node := range skewed {
		turned = append(turned, book.Turning{Pod: c.Places[0].Pod.UID, Node: node, Why: "skewed", Most: 1, Skewed: true})
	}
	if other != "" {
		turned = append(turned, book.Turning{Pod: c.Places[0].Pod.UID, Node: other, Why: "volume"})
	}
	c.Spread = instead
	s.Book.Conclude(c, turned, false, s.Now)
}

// TestALayoutOutlastsChangesThatDoNotMatter: nodes change all the time, and what has been found out of where pods would
// be spread holds as long as the nodes are what they were for the rules.
func TestALayoutOutlastsChangesThatDoNotMatter(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *storm)
		keeps  bool
	}{
		"a suspicion": {func(s *storm) {
			s.change("d1-n01", func(n *corev1.Node) {
				n.Annotations = map[string]string{rqv1.AnnotationSuspect: s.Now.Add(time.Hour).Format(time.RFC3339)}
			})
		}, true},
		"a cordon": {func(s *storm) {
			s.change("d1-n01", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		}, false},
		"a label": {func(s *storm) {
			s.change("d1-n01", func(n *corev1.Node) { n.Labels["zone"] = "near" })
		}, false},
		"another type": {func(s *storm) {
			s.change("d1-n01", func(n *corev1.Node) { n.Labels["gpu.flavor"] = "L4" })
		}, false},
		"a node comes": {func(s *storm) { s.addNode("d1-n02", "d1") }, false},
		"a node goes": {func(s *storm) {
			s.addNode("d1-n02", "d1")
			s.RemoveNode("d1-n02")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.spreadTurn()
				run := s.Runs["wants"].UID
				s.turnsDown(s.checks("wants"), []string{"d0-n00"}, "", "d0-n00", "d1-n00", "d0-n00", "d1-n00")
				c.change(s)
				s.Book.Forgive(run, s.Now)
				if got := s.Book.LaidOut(run); got != c.keeps {
					s.t.Fatalf("it is laid out: %t", got)
				}
			})
		})
	}
}

// TestALayoutIsNotDroppedForEver: nodes come and go all the time, and what the rules would have is found all the same.
func TestALayoutIsNotDroppedForEver(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.spreadTurn()
		run, kept := s.Runs["wants"].UID, 0
		for range 12 {
			s.refused(s.pod("wants-0"))
			check := s.Book.Check(run, s.Now)
			if check == nil {
				s.during(time.Minute)
				continue
			}
			s.turnsDown(check, []string{"d0-n00"}, "d0-n01", "d0-n00", "d1-n00", "d0-n00", "d1-n00")
			if s.Nodes["d1-n02"] != nil {
				s.RemoveNode("d1-n02")
			} else {
				s.addNode("d1-n02", "d1")
			}
			s.Book.Forgive(run, s.Now)
			if s.Book.LaidOut(run) {
				kept++
			}
		}
		if kept == 0 {
			s.t.Fatal("whatever is laid out is dropped before it is tried")
		}
	})
}

// again returns what is decided about a Run as in a cycle that goes on.
func (s *storm) again(run string) *book.Check {
	uid := s.Runs[run].UID
	for range 2 {
		s.Book.Refused(s.pod(run+"-0"), s.Now)
		s.Book.WorkOut(uid, s.Now)
	}
	if c := s.Book.Check(uid, s.Now); c != nil && c.Cuts {
		return c
	}
	return nil
}

// doubts has there be no time to find out where the pods of a decision would be spread.
func (s *storm) doubts(c *book.Check, skewed, other string) {
	c.Unlaid = true
	turned := []book.Turning{{Pod: c.Places[0].Pod.UID, Node: skewed, Why: "skewed", Most: 1, Skewed: true}}
	if other != "" {
		turned = append(turned, book.Turning{Pod: c.Places[0].Pod.UID, Node: other, Why: "volume"})
	}
	s.Book.Conclude(c, turned, other == "", s.Now)
}

// TestADoubtLastsWhateverLeaves: a decision of which there was no time to find out where its pods would be spread rests
// for seconds also where pods leave nodes all the time, and what has been laid out before outlasts that.
func TestADoubtLastsWhateverLeaves(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.spreadTurn()
		run := s.Runs["wants"].UID
		s.turnsDown(s.checks("wants"), []string{"d0-n00"}, "", "d0-n00", "d1-n00", "d0-n00", "d1-n00")
		s.doubts(s.again("wants"), "d0-n00", "")
		s.finish("holder-d1-n01")
		s.reconcile("holder-d1-n01")
		for s.Delivers() {
			s.Deliver()
		}
		asked := func(want bool) {
			s.t.Helper()
			s.Book.Forgive(run, s.Now)
			if c := s.again("wants"); (c != nil) != want {
				s.t.Fatalf("rules are asked about a decision: %t", c != nil)
			}
		}
		asked(false)
		s.during(4 * time.Second)
		asked(false)
		if !s.Book.LaidOut(run) {
			s.t.Fatal("what was laid out is forgotten")
		}
	})
}

// TestWhatIsCertainOutlastsADoubt: a node that has turned a decision down for itself is left alone, and it is decided
// anew at once, though there was no time to find out where the pods would be spread.
func TestWhatIsCertainOutlastsADoubt(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.spreadTurn()
		s.doubts(s.checks("wants"), "d0-n00", "d1-n00")
		if _, spot := s.again("wants").Spots["d1-n00"]; spot {
			s.t.Fatal("a node that has turned it down is tried again")
		}
	})
}

// TestNodesThatChangeCostNoPatience: nodes change again and again while nothing can be decided; once they do not it is
// asked about again after a minute.
func TestNodesThatChangeCostNoPatience(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.spreadTurn()
		run := s.Runs["wants"].UID
		s.turnsDown(s.checks("wants"), nil, "d1-n00")
		for n := range 8 {
			s.change("d1-n01", func(node *corev1.Node) { node.Labels["zone"] = fmt.Sprint(n) })
			s.Book.Forgive(run, s.Now)
			s.turnsDown(s.again("wants"), nil, "d1-n00")
		}
		s.during(61 * time.Second)
		s.Book.Forgive(run, s.Now)
		if diff := cmp.Diff([]string(nil), s.Book.Shunned(run)); diff != "" {
			s.t.Fatalf("nodes (-want +got):\n%s", diff)
		}
	})
}

// TestPodsThatLeaveForgiveWhereOthersAre: what nodes have said of a decision for where others are counts no more once
// pods have left any node, and what they have said of themselves does.
func TestPodsThatLeaveForgiveWhereOthersAre(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.spreadTurn()
		run := s.Runs["wants"].UID
		s.turnsDown(s.checks("wants"), []string{"d0-n00", "d0-n01"}, "d1-n00")
		said := func(want ...string) {
			s.t.Helper()
			s.Book.Forgive(run, s.Now)
			if diff := cmp.Diff(want, s.Book.Shunned(run)); diff != "" {
				s.t.Fatalf("nodes (-want +got):\n%s", diff)
			}
		}
		said("d0-n00", "d0-n01", "d1-n00")
		s.during(6 * time.Second)
		said("d0-n00", "d0-n01", "d1-n00")
		s.finish("holder-d1-n01")
		s.reconcile("holder-d1-n01")
		for s.Delivers() {
			s.Deliver()
		}
		said("d1-n00")
		s.during(time.Minute)
		said()
	})
}
