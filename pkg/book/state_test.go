package book_test

import (
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// is fails unless the gang of a Run has come as far as said.
func (w *world) is(run, state string) {
	w.t.Helper()
	look, _ := w.Book.Look(book.Objects{Run: w.Runs[run]})
	if look.State != state {
		w.t.Fatalf("the gang of %s is %s, want %s", run, look.State, state)
	}
}

// A Run goes through the states of its gang: it is paid for, gets its pods, waits, is placed as a whole, passes the
// barrier and runs; a rank that it loses comes the same way.
func TestStatesOfAGang(t *testing.T) {
	tell(t, func(w *world) {
		w.submit("run0", "org:a", 1, 2, 4)
		w.reconcile("run0")
		w.is("run0", "Shapeless")
		w.addNode("n0", "d0")
		w.reconcile("run0")
		w.is("run0", "Unpaid")
		w.setBudget("a", "org:a", 8)
		w.Book.Assess(w.Runs["run0"].UID, w.Now)
		w.is("run0", "Incomplete")
		w.reconcile("run0")
		w.is("run0", "Queued")
		w.place("run0-0")
		w.is("run0", "Placed")
		w.place("run0-1")
		w.is("run0", "Committed")
		w.settle()
		w.is("run0", "Running")
		w.DeletePod(w.pod("run0-1"))
		w.is("run0", "Incomplete")
		w.reconcile("run0")
		w.is("run0", "Queued")
		w.place("run0-1")
		w.settle()
		w.is("run0", "Running")
		w.DeleteRun("run0")
		if look, known := w.Book.Look(book.Objects{Run: w.Runs["run0"]}); known && look.State != "" {
			w.t.Fatalf("a deleted Run is %s", look.State)
		}
	})
}

// A Run of shards has one state for as long as it can be paid for.
func TestStateOfShards(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.sweep("run0", "org:a", 2, 4)
		w.is("run0", "Sweeping")
		w.settle()
		w.is("run0", "Sweeping")
	})
}
