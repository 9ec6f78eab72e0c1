package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A pod of a group that has completed is deleted before its Lease is closed, as some controllers do at once: it has
// completed all the same, nothing is kept for it, and nobody ends for the one that comes after it.
func TestAPodThatIsDoneAndDeletedAtOnceHasCompleted(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tell(t, func(w *world) {
			w.fleet("d0", 2)
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run2", "org:a", 1, 2, 8, 0, ungrouped, theirs)
			w.rounds(3)
			w.running("run2", "although its pods are there")
			w.submit("other", "org:a", 1, 1, 8)
			w.rounds(3)
			done := w.Slots(w.Runs["run2"].UID)[0][0].UID
			w.succeeds("run2", 0)
			w.controllers.done[slot{w.Runs["run2"].UID, 0}] = true
			w.DeletePod(done)
			w.rounds(3)
			for _, lease := range w.Leases {
				if lease.PodUID() == done && lease.Status.ClosureReason != rqv1.ClosedCompleted {
					w.t.Errorf("its Lease is closed as %q", lease.Status.ClosureReason)
				}
			}
			w.running("other", "although what it waits for is free")
			w.comes("run2", 2)
			if restarts {
				w.rounds(1)
				w.crash()
			}
			for range 4 {
				w.rounds(4)
				w.Pass(gangDeadline/2 + time.Second)
			}
			if diff := cmp.Diff([]int{1}, w.runsOf("run2")); diff != "" {
				w.t.Errorf("its pods that run (-want +got):\n%s", diff)
			}
		})
	}
}
