package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// A Run that is first heard of by a process that decides has had no Lease if it is younger than that process's term.
// An older one may have had: the ledger was read when nobody here knew the Run.
func TestARunOfAnEarlierTermMayHaveHadALease(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.submit("run0", "org:a", 1, 1, 8)
		run := w.Runs["run0"].DeepCopy()
		w.DeleteRun("run0")
		for _, c := range []struct {
			age  time.Duration
			want bool
		}{{time.Hour, true}, {-time.Hour, false}} {
			run.UID += "'"
			run.CreationTimestamp = metav1.NewTime(w.Now.Add(-c.age))
			w.Book.SetRun(run)
			look, known := w.Book.Look(book.Objects{Run: run})
			if !known || look.HadLease != c.want {
				t.Errorf("a Run that is %v old: known %v, may have had a Lease %v, want %v", c.age, known, look.HadLease, c.want)
			}
			w.Book.DeleteRun(run)
		}
	})
}
