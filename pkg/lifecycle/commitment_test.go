package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

func TestACommitmentIsKeptOrGivenUpOpenly(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct{ said, key, want string }{
		"the key is not known yet":          {"", "", ""},
		"the key comes to be known":         {"", "a", "a"},
		"the same key":                      {"a", "a", "a"},
		"the key is not known any more":     {"a", "", "a"},
		"another key: it cannot be kept":    {"a", "b", "Canceled"},
		"another key after nothing is said": {"", "b", "b"},
	} {
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "uid"},
			Status: rqv1.RunStatus{Phase: rqv1.RunPending}}
		p := Observed{Objects: book.Objects{Run: run}, Now: now, Look: book.Look{
			Prospect:    book.Prospect{Promise: &forecast.Promise{At: now.Add(time.Minute)}},
			Commitments: map[types.UID]string{"": test.key}}}
		r := newReservation(&p)
		r.Status.Lottery = &rqv1.Lottery{Commitment: test.said}
		p.Reservations = []*rqv1.Reservation{r}
		w := Reserve(p)
		if w == nil || w.Verb != UpdateStatus {
			t.Fatalf("%s: %+v", name, w)
		}
		got := w.Reservation.Status.Lottery.Commitment
		if w.Reservation.Status.State == rqv1.ReservationCanceled {
			got = "Canceled"
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestTheCountdown counts the seconds that are left until a date, as of now, and none once it has passed.
func TestTheCountdown(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]int64{15 * time.Minute: 900, 90*time.Second + 999*time.Millisecond: 90,
		-time.Minute: 0} {
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "uid"},
			Status: rqv1.RunStatus{Phase: rqv1.RunPending}}
		at := now.Add(left)
		p := Observed{Objects: book.Objects{Run: run}, Now: now, Look: book.Look{
			Prospect: book.Prospect{Promise: &forecast.Promise{At: at}}, Commitments: map[types.UID]string{}}}
		r := newReservation(&p)
		r.Spec.EarliestStart = metav1.NewTime(at.Truncate(time.Second))
		p.Reservations = []*rqv1.Reservation{r}
		w := Reserve(p)
		if w == nil || w.Verb != UpdateStatus || w.Reservation.Status.CountdownSeconds == nil {
			t.Fatalf("%s before: %+v", left, w)
		}
		if got := *w.Reservation.Status.CountdownSeconds; got != want {
			t.Errorf("%s before: %d seconds, want %d", left, got, want)
		}
	}
}
