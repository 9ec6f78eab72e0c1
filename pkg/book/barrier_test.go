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
