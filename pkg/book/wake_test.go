package book_test

import "testing"

// A Run that is woken for room which has come, and ends before it is tried, leaves the room to whoever waits next.
func TestARunThatEndsBeforeItIsTriedLeavesItsRoomToTheNext(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 1)
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 2, 4, 0, elastic(2, 2), upTo(4))
		w.round()
		w.round()
		w.Lose("d0-n00")
		w.round()
		w.submitWithSpares("run2", "org:a", 1, 1, 2, 0)
		w.round()
		w.addNode("n1", "d0")
		w.settle()
		w.checkSettled()
	})
}
