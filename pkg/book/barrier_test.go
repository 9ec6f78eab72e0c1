package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A gang that others were cut for passes the barrier like any other: no pod of it is bound before all can be, and it
// has its deadline from when its places are free, not from when it was decided (I9).
func TestAnActivatedGangPassesTheBarrierAsAWhole(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.stuckVictim(2)
		s.during(gangDeadline / 2)
		s.Ends.Delete(s.pod("run0-0"))
		s.DeletePod(s.pod("run0-0"))
		s.reconcile("run0")
		s.Act()
		first := s.pod("run1-0")
		s.cycle(first)
		if len(s.Binding) > 0 {
			s.t.Fatalf("%d pods are bound before all can be", len(s.Binding))
		}
		if diff := cmp.Diff(map[bool]time.Time{true: s.Now.Add(gangDeadline)},
			map[bool]time.Time{true: s.Waiting.At(first)}); diff != "" {
			s.t.Fatalf("until when it waits (-want +got):\n%s\n%s", diff, s.describe("run1"))
		}
		s.Rejects[s.Book.Assigned(s.pod("run1-1"))] = "Insufficient cpu"
		s.cycle(s.pod("run1-1"))
		s.Act()
		if len(s.Binding) > 0 || s.Waiting.Len() > 0 {
			s.t.Fatalf("a rank was turned down; %d are being bound and %d wait", len(s.Binding), s.Waiting.Len())
		}
		for _, lease := range s.OpenLeases() {
			if lease.Spec.RunRef.Name == "run1" {
				s.t.Fatalf("run1 has a Lease: %s", lease.Name)
			}
		}
	})
}

// The ranks that a Run which runs has lost do not wait for each other at the barrier, whoever decides by then:
// others of it have passed that before.
func TestLostRanksDoNotWaitForEachOther(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		tell(t, func(w *world) {
			w.fleet("d0", 5)
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run0", "org:a", 1, 4, 8, 0, ungrouped)
			w.rounds(4)
			w.running("run0", "although it fits")
			w.Pass(gangDeadline)
			if crashes {
				w.crash()
			}
			w.DeletePod(w.pod("run0-2"))
			w.Lose(w.on("run0-1"))
			for range 4 {
				w.reconcile("run0")
				w.Act()
			}
			w.cycle(w.pod("run0-1"))
			if len(w.Binding) != 1 || w.Waiting.Len() > 0 {
				w.t.Fatalf("%d pods are bound, and %d wait at the barrier; crashed: %v", len(w.Binding), w.Waiting.Len(), crashes)
			}
			w.settle()
			w.checkSettled()
		})
	}
}
