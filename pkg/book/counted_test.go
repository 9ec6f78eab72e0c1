package book_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Who was cut within the last hour is counted as Reservations tell it, in whatever order they come and go.
func TestCutsOfTheLastHourAreCounted(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, now := book.New(args), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	reservation := func(i int, ago time.Duration, cuts, version int) *rqv1.Reservation {
		at := metav1.NewMicroTime(now.Add(-ago))
		r := &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("r", i),
			UID: types.UID(fmt.Sprint("r", i)), ResourceVersion: fmt.Sprint(version),
			Labels: map[string]string{rqv1.LabelRunUID: fmt.Sprint("run", i)}},
			Status: rqv1.ReservationStatus{State: rqv1.ReservationReleased, ActivatedAt: &at}}
		for c := range cuts {
			r.Status.Cuts = append(r.Status.Cuts, rqv1.Cut{Action: rqv1.CutLottery, UID: types.UID(fmt.Sprint(i, c)),
				Run: rqv1.NamespacedName{Namespace: "ns", Name: fmt.Sprint(i, c)}})
		}
		return r
	}
	counts := func(when string, want int) {
		t.Helper()
		if got := b.CutsWithinHour(now); got != want {
			t.Errorf("%s: %d Runs were cut within the hour, want %d", when, got, want)
		}
	}
	b.SetReservation(reservation(1, 30*time.Minute, 2, 1))
	b.SetReservation(reservation(2, 10*time.Minute, 1, 1))
	b.SetReservation(reservation(3, time.Hour, 5, 1))
	b.SetReservation(reservation(4, 30*time.Minute, 1, 1))
	b.SetReservation(reservation(5, 20*time.Minute, 0, 1))
	counts("at first", 4)
	b.SetReservation(reservation(5, 20*time.Minute, 3, 2))
	b.SetReservation(reservation(1, 30*time.Minute, 1, 2))
	counts("once two have been written again", 6)
	b.DeleteReservation(reservation(4, 30*time.Minute, 1, 1))
	counts("once one is gone", 5)
	now = now.Add(35 * time.Minute)
	counts("later", 4)
}
