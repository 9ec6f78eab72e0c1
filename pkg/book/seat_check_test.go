package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// A spare stands by where other rules keep its rank from its place: the rank goes where it is accepted.
func TestASpareStaysWhereItsRankIsTurnedDown(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.asks(true)
		w.guarded(4, 2, 1, apart)
		w.Rejects[w.on("run0-s0")] = "node(s) had volume node affinity conflict"
		w.Lose(w.on("run0-0"))
		w.settle()
		w.running("run0", "although a node is free")
		want := map[string]int{"open Start Active": 1, "open Start Spare": 1, "open Swap Active": 1, "NodeFailure": 1}
		if diff := cmp.Diff(want, w.ledger("run0")); diff != "" {
			w.t.Fatalf("the spare made room for nobody: %s", diff)
		}
		w.checkSettled()
	})
}

// A spare makes room once other rules accept its rank in its place.
func TestASpareMakesRoomWhereItsRankIsAccepted(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.asks(true)
		w.guarded(3, 2, 1, apart)
		to := w.on("run0-s0")
		w.Lose(w.on("run0-0"))
		w.settle()
		if on := w.on("run0-0"); on != to {
			w.t.Fatalf("the rank is on %s, and its spare was on %s", on, to)
		}
		if got := w.ledger("run0"); got["Swap"] != 1 {
			w.t.Fatalf("its Leases: %v", got)
		}
		w.checkSettled()
	})
}

// Shards over a spare stay where its rank is turned down: nobody gives way for a rank that does not come.
func TestShardsStayWhereARankIsTurnedDown(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.guarded(3, 1, 1, apart)
		w.sweep("run1", "org:b", 8, 2)
		w.settle()
		spare := w.on("run0-s0")
		if n := w.shards("run1")[spare]; n != 4 {
			w.t.Fatalf("%d shards run over the spare", n)
		}
		w.Rejects[spare] = "node(s) had volume node affinity conflict"
		w.Lose(w.on("run0-0"))
		for range 8 {
			w.round()
			w.Pass(100 * time.Millisecond)
		}
		if n := w.shards("run1")[spare]; n != 4 {
			w.t.Fatalf("%d shards run over the spare now", n)
		}
	})
}

// A rank that its spare's place is refused to is asked about once more before its Run gives up.
func TestARankIsAskedAboutAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.asks(true)
		w.guarded(3, 2, 1, apart)
		to := w.on("run0-s0")
		w.Rejects[to] = "node(s) had volume node affinity conflict"
		w.Lose(w.on("run0-0"))
		for range 8 {
			w.round()
			w.Pass(100 * time.Millisecond)
		}
		clear(w.Rejects)
		for range 20 {
			w.round()
			w.Pass(time.Second)
		}
		w.running("run0", "although its spare's node accepts the rank")
		if on := w.on("run0-0"); on != to {
			w.t.Fatalf("the rank is on %s, and its spare was on %s", on, to)
		}
	})
}

// A spare stands by where it cannot be found out whether other rules accept its rank in its place.
func TestASpareStaysWhereNobodyKnows(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.guarded(3, 2, 1, apart)
		spare := w.on("run0-s0")
		w.Unsure[spare], w.Rejects[spare] = true, "node(s) had volume node affinity conflict"
		w.Lose(w.on("run0-0"))
		for range 8 {
			w.round()
			w.Pass(100 * time.Millisecond)
		}
		want := map[string]int{"open Start Active": 1, "open Start Spare": 1, "NodeFailure": 1}
		if diff := cmp.Diff(want, w.ledger("run0")); diff != "" {
			w.t.Fatalf("the spare made room for a rank that does not come: %s", diff)
		}
		clear(w.Unsure)
		clear(w.Rejects)
		for range 20 {
			w.round()
			w.Pass(time.Second)
		}
		if on := w.on("run0-0"); on != spare {
			w.t.Fatalf("the rank is on %s, and its spare was on %s", on, spare)
		}
	})
}

// Of two ranks that keep off each other one has the place of a spare, and the other finds none beside it: that is found
// out, and not asked about again and again.
func TestNoPlaceBesideASeat(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		for _, node := range []string{"n0", "n1", "n2"} {
			w.addNode(node, "d0")
		}
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 4, 1, apart)
		w.settle()
		spare := w.on("run0-s0")
		w.Lose(w.on("run0-0"), w.on("run0-1"))
		asked := w.Asked
		for range 4 {
			w.round()
			w.Pass(100 * time.Millisecond)
		}
		if w.Asked == asked || w.Asked > asked+6 {
			w.t.Fatalf("rules were asked %d times", w.Asked-asked)
		}
		w.addNode("n9", "d0")
		w.settle()
		w.running("run0", "although there is a node for each rank")
		got := []string{w.on("run0-0"), w.on("run0-1")}
		if diff := cmp.Diff([]string{spare, "n9"}, got); diff != "" {
			w.t.Fatalf("its ranks are elsewhere: %s", diff)
		}
	})
}

// A seat holds what its rank asks for beside GPUs also where the spare is gone before anybody has known of the seat:
// nobody else is placed on that.
func TestASeatHoldsCPUAfterARestart(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		for _, node := range []string{"n0", "n1", "n2"} {
			w.addNode(node, "d0")
		}
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 4, 1, withCPU("12", 0))
		w.settle()
		spare := w.on("run0-s0")
		w.Lose(w.on("run0-0"), w.on("run0-1"))
		for range 6 {
			w.reconcile("run0")
		}
		w.crash()
		w.addNode("n9", "d0")
		w.settle()
		w.running("run0", "although there is CPU for each rank")
		got := []string{w.on("run0-0"), w.on("run0-1")}
		if diff := cmp.Diff([]string{spare, "n9"}, got); diff != "" {
			w.t.Fatalf("its ranks are elsewhere: %s", diff)
		}
	})
}

// A Run has its places where another is to be cut, beside a spare, and the API server makes no pods for it meanwhile: a
// rank that is lost is swapped to that spare all the same, and the shards over it leave.
func TestARankHasItsSpareWhereAnotherRunWaitsForRoom(t *testing.T) {
	for _, asks := range []bool{true, false} {
		tellStorm(t, func(s *storm) {
			s.asks(asks)
			s.fleet("d0", 3)
			s.setBudget("a", "org:a", 64)
			s.setBudget("b", "org:b", 64)
			s.submitWithSpares("run0", "org:a", 1, 1, 2, 1, checkpointed, withCPU("4", 0))
			s.work()
			spare := s.on("run0-s0")
			for node, gpus := range map[string]int{"d0-n00": 8, "d0-n01": 8, "d0-n02": 8} {
				switch node {
				case spare:
					gpus = 2
				case s.on("run0-0"):
					gpus = 6
				}
				s.foreign("on-"+node, node, gpus)
			}
			s.submitWithSpares("holder", "org:a", 1, 1, 4, 0, checkpointed, withCPU("9", 0))
			s.work()
			s.sweep("shards", "org:b", 2, 1)
			s.later(time.Minute)
			s.submitWithSpares("wants", "org:b", 1, 2, 2, 0, withCPU("4", 0))
			s.work()
			if n := s.shards("shards")[spare]; n != 2 || s.on("holder-0") != spare {
				s.t.Fatalf("%d shards run over the spare:\n%s", n, s.story())
			}
			away := sim.Fault{Of: sim.Creations, Do: sim.Away, Lasts: true}
			s.Faults.Add(away)
			s.due()
			s.work()
			s.loseRank("run0-0")
			for range 10 {
				s.Faults.Drop(sim.Away)
				if err := s.Reconcile("run0"); err != nil {
					s.t.Fatal(err)
				}
				s.Faults.Add(away)
				s.work()
				s.during(time.Second)
				s.Book.Advance(s.Now)
			}
			s.running("run0", "although it has a spare")
			if on := s.on("run0-0"); on != spare {
				s.t.Fatalf("the rank is on %q:\n%s", on, s.story())
			}
			if n := s.shards("shards")[spare]; n > 0 {
				s.t.Fatalf("%d shards run where the rank is", n)
			}
			s.running("holder", "and nobody is cut yet")
		})
	}
}

// Shards run over a spare of a node where a Run is cut for another: they stay, since the other has what that held.
func TestShardsStayWhereAVictimMakesRoom(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 2, 1)
		s.work()
		spare, other := s.on("run0-s0"), s.on("run0-0")
		s.foreign("on-"+spare, spare, 2)
		s.foreign("on-"+other, other, 6)
		s.submitWithSpares("holder", "org:a", 1, 1, 4, 0, checkpointed)
		s.work()
		s.sweep("shards", "org:b", 2, 1)
		s.later(time.Minute)
		s.submit("wants", "org:b", 1, 2, 2)
		s.work()
		s.due()
		s.later(2 * time.Minute)
		s.running("wants", "although the holder may be cut for it")
		if got := s.ledger("shards"); len(got) != 1 || s.shards("shards")[spare] != 2 {
			s.t.Fatalf("Leases of shards: %v", got)
		}
	})
}
