package book_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// Replacements that another plugin refuses on their way get their nodes all the same, soon, whenever that is: also
// those that have not been let into the queue yet when it refuses the first.
func TestReplacementsAreRefusedOnTheirWay(t *testing.T) {
	for _, at := range []sim.Point{sim.AtFilter, sim.BeforeReserve, sim.AfterReserve, sim.BeforeLease, sim.AfterLease} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(6, 3, 0)
				w.refuseNext(1, swapping, at)
				w.Lose(w.on("run0-0"), w.on("run0-1"))
				for range 3 {
					w.reconcile("run0")
				}
				w.cycle(w.pod("run0-1")) // it waits for the first one's plan
				w.rounds(10)
				if w.refusals > 0 || w.on("run0-0") == "" || w.on("run0-1") == "" {
					w.t.Fatalf("%d refusals are left, and its pods are:\n%s", w.refusals, w.describe("run0"))
				}
				w.settle()
				w.checkSettled()
			})
		})
	}
}

// What is kept for any rank of a requeued Run is not paid for beside the ranks that have it by now (I3).
func TestTheMoneyOfAnyRankIsPaidOnce(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 8)
		s.submitWithSpares("shards", "org:a", 2, 2, 4, 0, ungrouped, opportunistic)
		s.work()
		s.submitWithSpares("run0", "org:a", 2, 1, 4, 0, withCPU("1", 8080), apart, elastic(2, 1), checkpointed)
		s.work()
		s.during(time.Second)
		s.RemoveNode("n1")
		s.disturb()
		s.turn(nil)
		s.restart()
		s.check()
		s.addNode("n1", "d0")
		s.turn(nil)
		s.check()
		s.running("run0", "although its node is back")
	})
}
