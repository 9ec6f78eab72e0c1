package book_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that was cut has its pods again in the second of the activation, and places for them at once: they are not
// among those whom the Run waits for that it was cut for. That Run is looked at when their Leases open.
func TestWhoStartsAgainInTheSecondOfItsCutIsNotAwaited(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.submit("run0", "org:a", 1, 2, 4)
		w.reconcile("run0")
		r := w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run0"}, Action: rqv1.CutLottery, GPUs: 8})
		r.Status.ActivatedAt.Time = w.Now.Add(300 * time.Millisecond)
		w.Book.SetReservation(r)
		w.Pass(time.Second)
		w.place("run0-0")
		if w.Book.Awaited(r) {
			w.t.Fatalf("it is awaited for the pods of its next start")
		}
		w.place("run0-1")
		w.Book.TakeActions()
		told := false
		for _, uid := range w.Bindings() {
			w.Bind(uid, 0)
			told = told || slices.Contains(w.Book.TakeActions().Reconcile, types.NamespacedName{Namespace: "ns", Name: "other"})
		}
		if !told {
			w.t.Fatalf("the other Run is not looked at although nobody is awaited any more")
		}
	})
}
