package book_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// turnComes has a Run hold all there is, and another wait whose date has come for a place for each of its four pods.
func (s *storm) turnComes() {
	s.addNode("n0", "d0")
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, checkpointed)
	s.work()
	s.during(time.Minute)
	s.submit("wants", "org:b", 1, 4, 2)
	s.work()
	s.due()
}

// later lets time go by in which whatever comes to be due is done.
func (s *storm) later(d time.Duration) {
	for end := s.Now.Add(d); s.Now.Before(end); {
		s.work()
		s.during(5 * time.Second)
		s.Book.Advance(s.Now)
	}
	s.work()
}

// denied fails unless a Run waits for what the API server does not take, with its leader's pod alone.
func (s *storm) denied(name string) {
	s.t.Helper()
	run := s.Runs[name]
	if run.Status.Phase != rqv1.RunPending || !strings.Contains(run.Status.Message, "exceeded quota") {
		s.t.Fatalf("%s is %s: %s", name, run.Status.Phase, run.Status.Message)
	}
	if r := run.Status.Refusal; r == nil || r.Reason != "NotCreated" {
		s.t.Fatalf("%s is refused for %+v", name, r)
	}
	if active, spares := s.countPods(name); active > 1 || spares > 0 {
		s.t.Fatalf("%s waits with %d pods and %d spares", name, active, spares)
	}
}

// says fails unless the message of a Run says something.
func (s *storm) says(name, what string) {
	s.t.Helper()
	if m := s.Runs[name].Status.Message; !strings.Contains(m, what) {
		s.t.Fatalf("%s says %q, not %q", name, m, what)
	}
}

// whole fails unless a Run runs with so many ranks and spares, all of them bound.
func (s *storm) whole(name string, ranks, spares int) {
	s.t.Helper()
	s.running(name, "with all of its pods")
	bound := 0
	for _, pod := range s.PodsOf(name) {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			bound++
		}
	}
	if a, n := s.countPods(name); int(a) != ranks || int(n) != spares || bound != ranks+spares {
		s.t.Fatalf("%s has %d ranks and %d spares, of which %d are bound: %s\n%s", name, a, n, bound,
			s.Runs[name].Status.Message, s.story())
	}
}

// shardsRun returns how many shards of a Run run.
func (s *storm) shardsRun(run string) int {
	n := 0
	for _, on := range s.shards(run) {
		n += on
	}
	return n
}

// loseRank has a Run's rank be lost with its node.
func (s *storm) loseRank(pod string) {
	node := s.Pods[s.pod(pod)].Spec.NodeName
	s.Lose(node)
	s.disturb()
}

// Runs that wait cost a pod each, whatever their width, and all of them once they have places.
func TestARunThatWaitsHasOnePod(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.submit("first", "org:a", 1, 2, 8)
		s.work()
		for i := range 3 {
			s.submitWithSpares(fmt.Sprint("later", i), "org:a", 1, 8, 2, 0, elastic(8, 1))
		}
		s.work()
		s.during(time.Minute)
		s.work()
		s.running("first", "although it is alone")
		if n := len(s.Pods); n != 2+3 {
			s.t.Fatalf("there are %d pods", n)
		}
		s.DeleteRun("first")
		for range 3 {
			s.work()
		}
		s.running("later0", "although there is room")
		if n := len(s.Pods); n != 8+2 {
			s.t.Fatalf("there are %d pods", n)
		}
	})
}

// A quota takes half of the pods of a Run whose turn has come: nobody is cut for it and no half gang is left. It starts
// when the quota takes them all.
func TestNobodyIsCutForPodsThatAreNotTaken(t *testing.T) {
	for _, spares := range []int{0, 1} {
		tellStorm(t, func(s *storm) {
			s.addNode("n0", "d0")
			s.addNode("n1", "d0")
			s.setBudget("a", "org:a", 64)
			s.setBudget("b", "org:b", 64)
			s.submitWithSpares("holder", "org:a", 1, 2, 8, 0, checkpointed)
			s.work()
			s.during(time.Minute)
			s.submitWithSpares("wants", "org:b", 1, 4, 2, spares)
			s.work()
			s.Quota = 2 + 2
			s.due()
			s.later(5 * time.Minute)
			s.running("holder", "and is to be cut for nobody")
			s.denied("wants")
			for name, r := range s.Reservations {
				if len(r.Status.Cuts) > 0 {
					s.t.Fatalf("Reservation %s cuts %v", name, r.Status.Cuts)
				}
			}
			s.Quota = 0
			for range 60 {
				if s.Runs["wants"].Status.Phase != rqv1.RunRunning {
					s.later(30 * time.Second)
				}
			}
			s.running("wants", "although its pods are taken")
			s.checkRecords()
		})
	}
}

// Two Runs that find half of a quota each do not keep each other from it: the older one starts, then the other.
func TestTwoRunsThatShareAQuotaDoNotStandOff(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.Quota = 4
		s.submit("older", "org:a", 1, 4, 2)
		s.during(time.Second)
		s.submit("younger", "org:a", 1, 4, 2)
		s.later(10 * time.Minute)
		s.running("older", "although its pods fit the quota")
		s.DeleteRun("older")
		s.later(10 * time.Minute)
		s.running("younger", "although its pods fit the quota by now")
	})
}

// The scheduler dies at any write between making a leader and telling the others to go.
func TestAMusterSurvivesADeathAtAnyWrite(t *testing.T) {
	for writes := range 14 {
		tellStorm(t, func(s *storm) {
			s.turnComes()
			s.dies(writes, sim.All)
			s.step(s.work)
			s.Faults.Drop(sim.Crash)
			s.later(2 * time.Minute)
			s.running("wants", "although the holder may be cut for it")
			s.checkRecords()
		})
	}
}

// A shard that completes its Run is not taken for a leader that is about to be planned: it gets what becomes idle.
func TestTheLastShardIsFilledIn(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 16)
		w.sweep("run0", "org:a", 2, 8)
		w.settle()
		w.addNode("n1", "d0")
		w.settle()
		if held := len(w.OpenLeases()); held != 2 {
			w.t.Fatalf("%d shards run", held)
		}
	})
}
