package book_test

import (
	"testing"
	"time"
)

// TestAGroupThatIsResized: pods beyond those that a Run started with are growth, and when they go it is narrower, so
// that nothing of them is held or paid for. It grows again in the same way.
func TestAGroupThatIsResized(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		wide := func(pods int) {
			t.Helper()
			w.resizeTo("run00", pods)
			for range 6 {
				w.Pass(10 * time.Second)
				w.grow()
				w.rounds(2)
			}
			width, on := w.Runs["run00"].Status.Width, w.boundSlots("run00")
			if width.Granted != int32(8*pods) || len(on) != pods {
				t.Fatalf("it is to have %d pods, is granted %d GPUs and is on %v", pods, width.Granted, on)
			}
			if held := w.heldGPUs(); held != int64(8*pods) {
				t.Errorf("%d GPUs are held for %d pods", held, pods)
			}
		}
		wide(5)
		wide(2)
		wide(4)
		w.settle()
		w.checkSettled()
	})
}
