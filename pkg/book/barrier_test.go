package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A gang that others were cut for passes the barrier like any other: no pod of it is bound before all can be, and it has its
// deadline from when its places are free, not from when it was decided (I9).
func TestAnActivatedGangPassesTheBarrierAsAWhole(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.stuckVictim(2)
		s.during(gangDeadline / 2)
		delete(s.ends, s.pod("run0-0"))
		s.deletePod(s.pod("run0-0"))
		s.reconcile("run0")
		s.act()
		first := s.pod("run1-0")
		s.cycle(first)
		if len(s.binding) > 0 {
			s.t.Fatalf("%d pods are bound before all can be", len(s.binding))
		}
		if diff := cmp.Diff(map[bool]time.Time{true: s.now.Add(gangDeadline)}, map[bool]time.Time{true: s.waiting[first]}); diff != "" {
			s.t.Fatalf("until when it waits (-want +got):\n%s\n%s", diff, s.describe("run1"))
		}
		s.rejects[s.book.Assigned(s.pod("run1-1"))] = "Insufficient cpu"
		s.cycle(s.pod("run1-1"))
		s.act()
		if len(s.binding) > 0 || len(s.waiting) > 0 {
			s.t.Fatalf("a rank was turned down; %d are being bound and %d wait", len(s.binding), len(s.waiting))
		}
		for _, lease := range s.openLeases() {
			if lease.Spec.RunRef.Name == "run1" {
				s.t.Fatalf("run1 has a Lease: %s", lease.Name)
			}
		}
	})
}
