package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A pod that comes after one that has completed waits beside others that go on, also once each of those has been lost
// and made anew: none of them is ended for it.
func TestAPodThatComesAfterAnotherWaitsWhoeverIsReplaced(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tell(t, func(w *world) {
			w.fleet("d0", 3)
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run00", "org:a", 1, 3, 8, 0, ungrouped, theirs)
			w.rounds(3)
			w.running("run00", "although its pods are there")
			w.submit("other", "org:a", 1, 1, 8)
			w.rounds(3)
			w.succeeds("run00", 0)
			w.rounds(3)
			w.running("other", "although what it waits for is free")
			w.comes("run00", 3)
			w.rounds(2)
			for _, n := range []int{1, 2} {
				w.Pass(5 * time.Second)
				w.forgets("run00", n)
				w.rounds(4)
				if restarts {
					w.crash()
					w.rounds(2)
				}
				w.running("run00", "although one of it goes on")
				if diff := cmp.Diff([]int{1, 2}, w.runsOf("run00")); diff != "" {
					w.t.Fatalf("once %d is made anew its pods that run (-want +got):\n%s", n, diff)
				}
			}
			for _, uid := range w.podsOf("other") {
				w.DeletePod(uid)
			}
			w.DeleteRun("other")
			w.rounds(6)
			if diff := cmp.Diff([]int{1, 2, 3}, w.runsOf("run00")); diff != "" {
				w.t.Fatalf("once there is room its pods that run (-want +got):\n%s", diff)
			}
		})
	}
}

// A group of which every rank has been given up does not run: the pods that come after that start together, or wait.
func TestAGroupOfWhichAllIsGivenUpWaits(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tell(t, func(w *world) {
			w.fleet("d0", 2)
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run00", "org:a", 1, 2, 8, 0, ungrouped, theirs)
			w.rounds(3)
			w.running("run00", "although its pods are there")
			w.leaves("run00", 0)
			for range 4 {
				w.rounds(2)
				w.Pass(gangDeadline / 2)
			}
			w.submit("other", "org:a", 1, 1, 8)
			w.rounds(4)
			w.running("other", "although nothing is kept for the pod that went")
			w.makes("run00", 0)
			w.rounds(3)
			w.running("run00", "although one of its pods runs")
			w.leaves("run00", 1)
			for range 6 {
				w.rounds(3)
				if restarts {
					w.crash()
				}
				w.Pass(gangDeadline / 2)
			}
			w.rounds(3)
			w.waits("run00", "although nothing of it runs")
			w.makes("run00", 1)
			w.rounds(6)
			w.waits("run00", "with room for one of its two pods")
			if runs := w.runsOf("run00"); len(runs) > 0 {
				w.t.Fatalf("%v of it start: %s", runs, w.describe("run00"))
			}
			w.DeleteRun("other")
			w.rounds(8)
			w.running("run00", "although there is room for all of it")
		})
	}
}
