package book_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
