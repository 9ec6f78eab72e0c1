package book_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// Who paid for a rank that is lost pays for its replacement, though by now the Budget allows less: also when the
// process is killed between the two.
func TestWhoPaidPaysForTheReplacementAfterARestart(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 16)
		w.setBudget("pool", "org", 64)
		w.submit("run0", "org:a", 1, 2, 8)
		w.settle()
		w.running("run0", "although it fits")
		w.setBudget("a", "org:a", 8) // the rest is overdraft, and stays
		w.Pass(time.Second)
		w.Lose(w.on("run0-0"))
		w.dies(rapid.IntRange(0, 14).Draw(w.t, "writes")-1, sim.ByControllers)
		crash := rapid.IntRange(0, 6).Draw(w.t, "rounds")
		for i := range 12 {
			if i == crash {
				w.crash()
			}
			w.rounds(1)
		}
		w.settle()
		w.running("run0", "although there is a node")
		w.checkSettled()
		for name, l := range w.Leases {
			if l.Spec.Payer.Budget != "a" {
				w.t.Fatalf("Lease %s is paid by %s (%s)", name, l.Spec.Payer.Budget, l.Spec.Payer.Relation)
			}
		}
	})
}
