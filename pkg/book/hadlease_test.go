package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
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

// Reading a ledger with a long past takes a while. Whoever is submitted meanwhile is of this term too.
func TestARunThatComesWhileTheLedgerIsReadHasHadNoLease(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, now := book.New(args), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b.Reads(now)
	b.Reads(now.Add(30 * time.Second)) // the first time failed
	b.Begin(now.Add(time.Minute))
	for after, want := range map[time.Duration]bool{time.Second: true, 10 * time.Second: false, 2 * time.Minute: false} {
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: types.UID(after.String()),
			CreationTimestamp: metav1.NewTime(now.Add(after))}}
		b.SetRun(run)
		if look, known := b.Look(book.Objects{Run: run}); !known || look.HadLease != want {
			t.Errorf("made %s after reading began: known %v, may have had a Lease %v, want %v", after, known, look.HadLease,
				want)
		}
		b.DeleteRun(run)
	}
}
