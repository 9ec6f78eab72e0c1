package book_test

import (
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// TestAQuestionThatNobodyAnswersEnds: the Run about which other rules are asked is not looked at meanwhile, so that its
// Leases would stay open, and its places kept, for ever.
func TestAQuestionThatNobodyAnswersEnds(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, apart)
		w.reconcile("run0")
		w.Book.Place(w.pod("run0-0"), w.Now)
		run := w.Runs["run0"]
		if w.Book.Check(run.UID, w.Now) == nil {
			w.t.Fatal("nothing is asked")
		}
		for range 15 {
			w.Pass(time.Second)
			w.Book.Advance(w.Now)
		}
		if _, known := w.Book.Look(book.Objects{Run: run}); w.Book.Check(run.UID, w.Now) != nil || !known {
			w.t.Fatal("it is asked still, and the Run is not looked at")
		}
		w.settle()
		w.running("run0", "although its pods fit")
	})
}
