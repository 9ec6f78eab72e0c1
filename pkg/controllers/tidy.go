package controllers

import (
	"container/heap"
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// tidyReservations deletes Reservations that ended longer ago than closed GPU leases are kept, and counts those that
// wait.
func (d *dates) tidyReservations(ctx context.Context) {
	every(ctx, d.clock, 5*time.Second, func() { d.tidy(ctx) })
}

func (d *dates) tidy(ctx context.Context) {
	now := d.clock.Now()
	if !d.doubt.doubts() {
		for _, r := range d.reservations.endedBefore(now.Add(-d.retention)) {
			_ = d.client.Delete(ctx, r, client.Preconditions{UID: &r.UID}) // else next time: another may have the name
		}
	}
	waiting, oldest := d.reservations.waits()
	metrics.ReservationsWaiting.Set(float64(waiting))
	age := time.Duration(0)
	if waiting > 0 {
		age = now.Sub(oldest)
	}
	metrics.OldestReservation.Set(age.Seconds())
}

// reservationAges are the Reservations that wait, by when they were made, and those that have ended, by when: whoever
// looks for the oldest does not go through the others, however many there are.
type reservationAges struct {
	mu             sync.Mutex
	of             map[types.NamespacedName]*agedReservation
	waiting, ended expiryHeap
}

// agedReservation is a Reservation in the heap that it belongs to; in none while it is not known when it ended.
type agedReservation struct {
	uid types.UID
	in  *expiryHeap
	x   expiry
}

func newReservationAges() *reservationAges {
	return &reservationAges{of: map[types.NamespacedName]*agedReservation{}}
}

// note notes how a Reservation stands by now.
func (a *reservationAges) note(r *rqv1.Reservation) {
	a.drop(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	name := client.ObjectKeyFromObject(r)
	is := &agedReservation{uid: r.UID, x: expiry{run: name}}
	switch {
	case !r.Ended():
		is.in, is.x.at = &a.waiting, r.CreationTimestamp.Time
	case r.Status.EndedAt != nil:
		is.in, is.x.at = &a.ended, r.Status.EndedAt.Time
	default:
		return
	}
	a.of[name] = is
	heap.Push(is.in, &is.x)
}

// drop forgets a Reservation.
func (a *reservationAges) drop(r *rqv1.Reservation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := client.ObjectKeyFromObject(r)
	if was := a.of[name]; was != nil {
		heap.Remove(was.in, was.x.place)
		delete(a.of, name)
	}
}

// waits returns how many wait, and when the oldest of them was made.
func (a *reservationAges) waits() (n int, oldest time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		return 0, time.Time{}
	}
	return len(a.waiting), a.waiting[0].at
}

// endedBefore returns those that ended before an instant, by name and UID.
func (a *reservationAges) endedBefore(at time.Time) []*rqv1.Reservation {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []*expiry
	for len(a.ended) > 0 && a.ended[0].at.Before(at) {
		found = append(found, heap.Pop(&a.ended).(*expiry))
	}
	out := make([]*rqv1.Reservation, len(found))
	for i, x := range found {
		heap.Push(&a.ended, x) // until it is seen to be gone
		out[i] = &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: x.run.Namespace, Name: x.run.Name,
			UID: a.of[x.run].uid}}
	}
	return out
}
