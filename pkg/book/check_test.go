package book_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A gang whose pods keep off each other starts with as many on each node as that takes.
func TestPodsThatKeepOffEachOther(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.asks(true)
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 3, 2, 0, apart)
		w.settle()
		w.running("run0", "although there is a node for each pod")
		if got := w.nodesOf("run0"); !slices.Equal(got, []string{"d0-n00", "d0-n01", "d0-n02"}) {
			w.t.Fatalf("it runs on %v", got)
		}
		if n := w.Book.Bounded(w.Runs["run0"].UID); n > 0 {
			w.t.Fatalf("what %d nodes have said outlives the start that was accepted", n)
		}
	})
}

// Nobody is cut for a Run that a rule which plans do not know would keep off, and nobody is told of it meanwhile; it
// is told the rule, and asked about less and less often. When the nodes change it is asked again at once.
func TestNobodyIsCutWhereOtherRulesStandInTheWay(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.standoff("1", "1")
		s.Rejects["d0-n00"] = "node(s) had volume node affinity conflict"
		s.work()
		for range 60 {
			s.during(30 * time.Second)
			s.work()
		}
		s.running("holder", "although nothing is won by cutting it")
		for name, r := range s.Reservations {
			if len(r.Status.Cuts) > 0 || r.Status.ActivatedAt != nil {
				s.t.Fatalf("%s was activated: %+v", name, r.Status)
			}
		}
		r := s.Book.Refusal(s.Runs["wants"].UID)
		if r == nil || r.Rejected == nil || r.Rejected.Node != "d0-n00" || r.Rejected.Rest < time.Minute ||
			!strings.Contains(r.Message, "no Run is cut for it") {
			s.t.Fatalf("it is refused for %+v", r)
		}
		if n := len(s.Reservations); n > 8 {
			s.t.Fatalf("it had %d Reservations in half an hour", n)
		}
		clear(s.Rejects)
		s.change("d0-n00", func(n *corev1.Node) { n.Labels["zone"] = "near" })
		for n := 0; n < 12 && s.Runs["wants"].Status.Phase != rqv1.RunRunning; n++ {
			s.during(30 * time.Second)
			s.work()
		}
		s.running("wants", "although nothing stands in its way any more")
	})
}

// A cut is made where other rules accept the pods, although another place would have taken fewer.
func TestCutsGoWhereOtherRulesAllow(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.fleet("d0", 1)
		s.fleet("d1", 1)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("holder0", "org:a", 1, 1, 8, 0, checkpointed)
		s.submitWithSpares("holder1", "org:a", 1, 1, 8, 0, checkpointed)
		s.work()
		s.during(time.Minute)
		s.Rejects["d0-n00"] = "node(s) had volume node affinity conflict"
		s.submitWithSpares("wants", "org:b", 1, 1, 8, 0)
		s.work()
		s.due()
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.running("wants", "although the Run in d1 could be cut")
		if got := s.nodesOf("wants"); !slices.Equal(got, []string{"d1-n00"}) {
			s.t.Fatalf("it runs on %v", got)
		}
		for _, name := range []string{"holder0", "holder1"} {
			if s.nodesOf(name)[0] == "d0-n00" && s.Runs[name].Status.Phase != rqv1.RunRunning {
				s.t.Fatalf("%s was cut as well", name)
			}
		}
	})
}

// A Run whose pods keep off each other, and that has too few nodes for it, is told so and is asked about again: what
// the rules look at may change without anybody's knowing.
func TestARunWithTooFewNodesForItsRules(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.asks(true)
		w.fleet("d0", 1)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 2, 0, apart)
		for range 5 {
			w.round()
		}
		r := w.Book.Refusal(w.Runs["run0"].UID)
		if r == nil || r.Rejected == nil || r.Rejected.Node != "d0-n00" || !r.Passes() {
			w.t.Fatalf("it is refused for %+v", r)
		}
	})
}

// Shards stay where a start that would have them leave is turned down, or a decision by which others are cut.
func TestShardsStayWhereAStartIsTurnedDown(t *testing.T) {
	for name, holder := range map[string]bool{"start": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.asks(true)
				s.fleet("d0", 1)
				s.setBudget("a", "org:a", 64)
				s.setBudget("b", "org:b", 64)
				if holder {
					s.submitWithSpares("holder", "org:a", 1, 1, 4, 0, checkpointed)
					s.work()
				}
				s.sweep("shards", "org:b", 4, 1)
				s.work()
				s.during(time.Minute)
				s.Rejects["d0-n00"] = "node(s) had volume node affinity conflict"
				s.submitWithSpares("wants", "org:b", 1, 1, 8, 0, apart)
				for range 20 {
					s.work()
					s.during(10 * time.Second)
				}
				if n := s.shards("shards")["d0-n00"]; n != 4 {
					s.t.Fatalf("%d shards run", n)
				}
				if s.Asked == 0 {
					s.t.Fatal("nobody was asked")
				}
			})
		})
	}
}

// A start that nobody can find out about goes on, and is not asked about each time that it is turned down.
func TestAStartThatNobodyKnowsOf(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.fleet("d0", 6)
		w.setBudget("a", "org:a", 64)
		for name := range w.Nodes {
			w.Unsure[name], w.Rejects[name] = true, "node(s) had volume node affinity conflict"
		}
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, apart)
		for range 600 {
			w.round()
			w.Pass(100 * time.Millisecond)
		}
		if w.Asked == 0 || w.Asked > 5 {
			w.t.Fatalf("rules were asked %d times within a minute", w.Asked)
		}
		clear(w.Rejects)
		w.settle()
		w.running("run0", "although a node accepts it")
	})
}

// A Run whose date has come while cuts are paused costs no cycles: its date stands still. Once they go on it is decided
// about.
func TestADateThatStandsStillCostsNoCycles(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.standoff("1", "1")
		s.work()
		s.pause(true)
		lead := s.pod("wants-0")
		for range 20 {
			s.during(31 * time.Second)
			s.Book.Due(s.Now)
			s.refresh()
			s.Act()
			if s.Queue[lead] {
				s.t.Fatalf("its leader is tried at %s although nobody may be cut for it", s.Now)
			}
		}
		s.pause(false)
		for range 4 {
			s.work()
			s.during(noticePeriod)
		}
		s.running("wants", "although cuts go on")
	})
}

// Nobody is cut where it cannot be found out what other rules say, and they are asked less and less often, also where
// nodes change all the time.
func TestNobodyIsCutWhereNobodyKnows(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.standoff("1", "1")
		s.Unsure["d0-n00"] = true
		s.work()
		for i := range 60 {
			s.during(30 * time.Second)
			s.change("d0-n00", func(n *corev1.Node) { n.Labels["zone"] = fmt.Sprint(i) })
			s.work()
		}
		s.running("holder", "although nothing is known about what cutting it would do")
		if s.Asked == 0 || s.Asked > 10 {
			s.t.Fatalf("rules were asked %d times in half an hour", s.Asked)
		}
		clear(s.Unsure)
		for n := 0; n < 150 && s.Runs["wants"].Status.Phase != rqv1.RunRunning; n++ {
			s.during(30 * time.Second)
			s.work()
		}
		s.running("wants", "although nothing stands in its way any more")
	})
}

// All nodes turn down a rank that has been made, and nobody knew: first of two that are to be on one node, then of each
// on its own. A decision that was turned down is not made again.
func TestADecisionThatIsTurnedDownEverywhere(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.fleetOf("n0", "n1")
		s.setBudget("a", "org:a", 64)
		for _, name := range []string{"holder0", "holder1"} {
			s.submitWithSpares(name, "org:a", 1, 2, 4, 0, checkpointed)
		}
		s.work()
		s.during(time.Minute)
		s.submitWithSpares("wants", "org:b", 1, 2, 4, 0, ungrouped)
		s.work()
		s.disdain("wants-1")
		s.due()
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		for _, name := range []string{"holder0", "holder1"} {
			s.running(name, "although nobody can start in its place")
		}
	})
}
