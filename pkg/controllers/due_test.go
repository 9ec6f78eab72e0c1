package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// TestTidyReservations deletes what has ended long ago, and counts what waits.
func TestTidyReservations(t *testing.T) {
	metrics.Register()
	reservation := func(name string, state rqv1.ReservationState, ended, made time.Duration) *rqv1.Reservation {
		r := reserved(state, "")
		r.ObjectMeta = named(name, types.UID(name))
		r.CreationTimestamp = metav1.NewTime(noon.Add(-made))
		if r.Status.EndedAt = nil; ended > 0 {
			r.Status.EndedAt = &metav1.Time{Time: noon.Add(-ended)}
		}
		return r
	}
	waits := reservation("waits", rqv1.ReservationPending, 0, 2*time.Minute)
	older := reservation("older", rqv1.ReservationActivating, 0, 5*time.Minute)
	young := reservation("young", rqv1.ReservationReleased, 59*time.Minute, 2*time.Hour)
	old := reservation("old", rqv1.ReservationReleased, 61*time.Minute, 2*time.Hour)
	canceled := reservation("canceled", rqv1.ReservationCanceled, 2*time.Hour, 3*time.Hour)
	anew := old.DeepCopy()
	anew.UID, anew.Status = "anew", rqv1.ReservationStatus{State: rqv1.ReservationPending}
	for name, test := range map[string]struct {
		cached, stored []*rqv1.Reservation
		faults         []fault
		wrote          []string
		waiting        float64
		oldest         time.Duration
	}{
		"none":            {},
		"those that wait": {cached: []*rqv1.Reservation{waits, older}, waiting: 2, oldest: 5 * time.Minute},
		"those that ended": {cached: []*rqv1.Reservation{waits, young, old, canceled},
			wrote: []string{"delete reservations canceled", "delete reservations old"}, waiting: 1, oldest: 2 * time.Minute},
		"one that is gone already": {cached: []*rqv1.Reservation{old, canceled}, stored: []*rqv1.Reservation{canceled},
			wrote: []string{"delete reservations canceled"}},
		"one whose name another has by now": {cached: []*rqv1.Reservation{old}, stored: []*rqv1.Reservation{anew}},
		"one that may not be deleted": {cached: []*rqv1.Reservation{old, canceled},
			faults: []fault{{on: "delete reservations old", err: forbidden}},
			wrote:  []string{"delete reservations canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.stored == nil {
				test.stored = test.cached
			}
			s, clock := newServer(t), clocktesting.NewFakeClock(noon)
			for _, r := range test.stored {
				if err := s.kinds.Create(t.Context(), r.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			s.written()
			s.faults = test.faults
			seen := newReservationAges()
			for _, r := range test.cached {
				seen.note(r)
			}
			d := &dates{client: s.kinds, clock: clock, doubt: believing(clock), reservations: seen, retention: time.Hour}
			go d.tidyReservations(t.Context())
			awaitWaiters(clock)
			if diff := cmp.Diff(test.wrote, s.written()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			waiting, err := testutil.GetGaugeMetricValue(metrics.ReservationsWaiting)
			oldest, err2 := testutil.GetGaugeMetricValue(metrics.OldestReservation)
			if got, want := fmt.Sprint(waiting, oldest, err, err2), fmt.Sprint(test.waiting, test.oldest.Seconds(), nil,
				nil); got != want {
				t.Errorf("waiting, and for how long: %s, want %s", got, want)
			}
		})
	}
}

// TestAReservationIsTidiedAsItStands by now: it has been told often before that it waits, or that another of its name
// does.
func TestAReservationIsTidiedAsItStands(t *testing.T) {
	a := newReservationAges()
	reservation := func(name, uid string, ended bool) *rqv1.Reservation {
		r := reserved(rqv1.ReservationPending, "")
		r.ObjectMeta = named(name, types.UID(uid))
		r.CreationTimestamp = metav1.NewTime(noon)
		if ended {
			r.Status.State, r.Status.EndedAt = rqv1.ReservationReleased, &metav1.Time{Time: noon}
		}
		return r
	}
	is := func(waiting int, ended ...string) {
		t.Helper()
		var got []string
		for _, r := range a.endedBefore(noon.Add(time.Second)) {
			got = append(got, string(r.UID))
		}
		slices.Sort(got)
		if n, _ := a.waits(); n != waiting || !slices.Equal(got, ended) {
			t.Errorf("%d wait, and %v have ended; want %d and %v", n, got, waiting, ended)
		}
	}
	is(0)
	a.note(reservation("x", "x1", false))
	a.note(reservation("x", "x1", false))
	a.note(reservation("y", "y1", false))
	is(2)
	a.note(reservation("x", "x1", true))
	is(1, "x1")
	is(1, "x1") // it is there still
	a.note(reservation("y", "y1", true))
	is(0, "x1", "y1")
	a.drop(reservation("x", "x1", true))
	a.drop(reservation("x", "x1", true))
	a.note(reservation("x", "x2", false))
	is(1, "y1")
	if early := a.endedBefore(noon); len(early) > 0 {
		t.Errorf("%d are to go before their time", len(early))
	}
}
