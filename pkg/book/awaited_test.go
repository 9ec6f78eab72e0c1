package book_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		at := metav1.NewMicroTime(w.Now.Add(300 * time.Millisecond))
		run := w.Runs["run0"]
		r := &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: "run1-r0", Namespace: "ns", UID: "r",
			Labels: map[string]string{rqv1.LabelRunUID: "run1-uid"}},
			Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "run1"}},
			Status: rqv1.ReservationStatus{State: rqv1.ReservationActivating, ActivatedAt: &at, Cuts: []rqv1.Cut{{
				Run: rqv1.NamespacedName{Namespace: "ns", Name: "run0"}, UID: run.UID, Action: rqv1.CutLottery, GPUs: 8}}}}
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
			told = told || slices.Contains(w.Book.TakeActions().Reconcile, types.NamespacedName{Namespace: "ns", Name: "run1"})
		}
		if !told {
			w.t.Fatalf("run1 is not looked at although nobody is awaited any more")
		}
	})
}
