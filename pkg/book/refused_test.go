package book_test

import (
	"fmt"
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// Replacements that another plugin refuses on their way get their nodes all the same, soon, whenever that is: also those
// that have not been let into the queue yet when it refuses the first.
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
