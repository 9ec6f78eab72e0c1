package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// TestAReservationSaysWhatIsStuck has it say once around which pods its Run is planned again, and how it ends when that
// does not do.
func TestAReservationSaysWhatIsStuck(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := metav1.NewMicroTime(now.Add(-time.Minute))
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "uid"},
		Status: rqv1.RunStatus{Phase: rqv1.RunPending}}
	r := &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run-r0",
		Labels: map[string]string{rqv1.LabelRunUID: "uid"}},
		Status: rqv1.ReservationStatus{State: rqv1.ReservationActivating, ActivatedAt: &at,
			Lottery: &rqv1.Lottery{Nonce: strings.Repeat("0", 64)}}}
	p := Observed{Objects: book.Objects{Run: run, Reservations: []*rqv1.Reservation{r}}, Now: now}
	p.Stuck = []book.Stuck{{Pod: types.NamespacedName{Namespace: "ns", Name: "x-0"}, Node: "n",
		Until: now.Add(-30 * time.Second)}, {}}
	w := Reserve(p)
	const want = "planned again around pods that have not gone: pod ns/x-0 on node n, which should have ended by " +
		"2026-03-01T11:59:30Z and is still there, and 1 more"
	if w == nil || w.Reservation.Status.Reason != want || len(w.Stuck) != 2 {
		t.Fatalf("%+v", w)
	}
	p.Reservations = []*rqv1.Reservation{w.Reservation}
	if again := Reserve(p); again != nil {
		t.Errorf("it is said twice: %+v", again)
	}
	p.Activation = &book.Activation{Failed: true, Cause: rqv1.CanceledVictimStayed, Why: "a pod is still there"}
	w = Reserve(p)
	if s := w.Reservation.Status; s.State != rqv1.ReservationCanceled || s.Cause != rqv1.CanceledVictimStayed ||
		s.Reason != "the Run could not start after all: a pod is still there" || len(w.Stuck) != 2 {
		t.Errorf("%+v", w)
	}
}
