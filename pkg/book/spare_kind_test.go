package book_test

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestASpareStaysForARankThatMayNotBeThere: a rank whose pod is gone, and that may not be where its group's spare is,
// does not have the spare give its place up, also where its pod was the last of its kind.
func TestASpareStaysForARankThatMayNotBeThere(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 5)
		w.setBudget("a", "org:a", 48)
		w.controllers.pinned = map[int]string{0: "d0-n00,d0-n02", 1: "d0-n01", 2: "d0-n03,d0-n04"}
		w.submitWithSpares("run00", "org:a", 1, 3, 8, 1, theirs)
		w.rounds(6)
		spare := w.spareOn("0")
		w.Lose("d0-n03")
		w.rounds(20)
		w.settle()
		var closed []string
		for name, l := range w.Leases {
			if l.Spec.Slice.Role == rqv1.RoleSpare && l.Status.Closed {
				closed = append(closed, name+" "+string(l.Status.ClosureReason))
			}
		}
		if on := w.boundSlots("run00")[2]; on != "d0-n04" || w.spareOn("0") != spare || len(closed) > 0 {
			t.Fatalf("the rank is on %q, the spare was on %s and is on %s, closed: %v", on, spare, w.spareOn("0"), closed)
		}
	})
}
