package book_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
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

// TestAGroupThatIsMadeSmallerFromBelow: whichever pods a controller takes from a group of which it asks for fewer, no
// place and no money is kept for those, and the Run says what it has. One that is lost then has its place kept, and is
// replaced there; one more than there were is placed like any.
func TestAGroupThatIsMadeSmallerFromBelow(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		run := w.Runs["run00"].UID
		has := func(what string, slots ...int) {
			t.Helper()
			w.rounds(4)
			status, on := &w.Runs["run00"].Status, slices.Sorted(maps.Keys(w.boundSlots("run00")))
			gpus := int32(8 * len(slots))
			if !slices.Equal(on, slots) || status.Width.Desired != gpus || status.Width.Allocated != gpus {
				t.Fatalf("%s: its pods are %v, and its width is %+v", what, on, status.Width)
			}
			if held := w.heldGPUs(); held != int64(gpus) {
				t.Errorf("%s: %d GPUs are held", what, held)
			}
			for payer, paid := range w.Book.Budgets.Usage() {
				if paid != int(gpus) {
					t.Errorf("%s: %v pays for %d GPUs", what, payer, paid)
				}
			}
			started := meta.FindStatusCondition(status.Conditions, rqv1.ConditionStarted)
			if started.Reason == "PodsNotMade" || started.Reason == "Replacing" {
				t.Errorf("%s: it says %s: %s", what, started.Reason, started.Message)
			}
		}
		w.controllers.wants[run] = 2
		w.leaves("run00", 0)
		w.leaves("run00", 1)
		w.resize(w.Runs["run00"])
		has("two of four have gone", 2, 3)

		w.Make(sim.Foreign{Run: w.Runs["run00"], Slot: 4, Any: true})
		w.controllers.wants[run] = 3
		w.resize(w.Runs["run00"])
		has("another has come", 2, 3, 4)

		before := w.boundSlots("run00")
		for _, pod := range w.Slots(run)[3] {
			w.DeletePod(pod.UID)
		}
		w.rounds(3)
		if held := w.heldGPUs(); held != 24 {
			t.Errorf("one is lost: %d GPUs are held", held)
		}
		w.Make(sim.Foreign{Run: w.Runs["run00"], Slot: 5, Any: true})
		has("another has come for it", 2, 4, 5)
		if on := w.boundSlots("run00"); on[5] != before[3] {
			t.Errorf("it is on %v, and the lost one was on %v", on, before)
		}
	})
}
