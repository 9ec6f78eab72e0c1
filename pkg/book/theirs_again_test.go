package book_test

import "testing"

// The only node that there is turns the only pod of a group out, whose controller makes another. A rank does not go on
// where it was turned out; its Run waits to start again, and that is where it does.
func TestAGroupThatWasTurnedOutStartsAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 1)
		w.setBudget("a", "org:a", 8)
		w.submitWithSpares("run00", "org:a", 1, 1, 2, 0, ungrouped, theirs)
		w.rounds(3)
		w.running("run00", "although its pod is there")
		w.Evict(w.PodsOf("run00")[0].UID, "NodeShutdown")
		w.settle()
		w.checkSettled()
		w.running("run00", "although its node is idle")
	})
}
