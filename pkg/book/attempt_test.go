package book_test

import (
	"testing"
	"time"
)

// The clock is set back while a Run runs, which is sent back to wait then: what it held is kept for it all the same,
// also by a process that begins after that.
func TestAClockThatWasSetBackCostsARequeuedRunNoRoom(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tell(t, func(w *world) {
			w.guarded(2, 2, 0, checkpointed)
			w.Pass(time.Second)
			w.submit("run1", "org:b", 1, 1, 8)
			w.settle()
			w.Jump(-time.Hour)
			w.Lose(w.on("run0-0"))
			w.rounds(6)
			w.waits("run0", "on one node")
			if restarts {
				w.crash()
			}
			w.rounds(10)
			w.waits("run1", "in the room of a Run that was sent back to wait")
			w.addNode("n9", "d0")
			w.rounds(6)
			w.running("run0", "although a node has come beside its room")
		})
	}
}
