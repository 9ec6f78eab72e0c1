package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// A pod that comes after one that has completed, and whose binding is refused until it is ended, leaves no lost rank
// behind: nothing is kept for the next one, whoever tells of it.
func TestARefusedPodAfterADoneOneLosesNoRank(t *testing.T) {
	for name, restarts := range map[string]bool{"": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 2)
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares("run2", "org:a", 1, 2, 8, 0, ungrouped, theirs)
				w.rounds(3)
				w.running("run2", "although its pods are there")
				uid := w.Runs["run2"].UID
				w.succeeds("run2", 0)
				w.rounds(3)
				w.Pass(3 * time.Second)
				w.Refuses = func(pod *corev1.Pod, _ string, at sim.Point) bool {
					_, n, made := sim.MadeFor(pod)
					return made && n == 2 && at == sim.AfterLease
				}
				w.comes("run2", 2)
				w.rounds(3)
				w.submit("other", "org:a", 1, 1, 8)
				w.rounds(2)
				for range 3 {
					w.Pass(gangDeadline / 2)
					w.rounds(2)
				}
				want := map[string]int{"Completed": 1, "Unwound": 1, "open Start Active": 1}
				if diff := cmp.Diff(want, w.ledger("run2")); diff != "" {
					w.t.Errorf("Leases (-want +got):\n%s\n%s", diff, w.describe("run2"))
				}
				if restarts {
					w.crash()
				}
				w.Pass(3 * time.Second)
				w.rounds(4)
				w.running("other", "although nothing is kept for a rank that has completed")
				w.comes("run2", 3)
				w.rounds(4)
				w.running("other", "although nobody is to end for a rank that has completed")
				if diff := cmp.Diff([]int{1}, w.runsOf("run2")); diff != "" || len(w.Slots(uid)[3]) != 1 {
					w.t.Errorf("pods that run (-want +got):\n%s", diff)
				}
			})
		})
	}
}
