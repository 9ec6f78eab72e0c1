package controllers

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// dates has things happen whose time has come.
type dates struct {
	book         *book.Book
	client       client.Client
	clock        clock.Clock
	reservations cache.SharedInformer
	retention    time.Duration // of Reservations that have ended
}

// keep has everything happen in time that no event brings, until the context ends. It sleeps until then; a clock that
// jumps is noticed after a while. Of changes that come one upon the other, it sees many at once.
func (d *dates) keep(ctx context.Context) {
	const longest, least, breath = 15 * time.Second, 5 * time.Millisecond, 50 * time.Millisecond
	var last time.Duration
	for {
		d.book.Advance(d.clock.Now())
		start := d.clock.Now()
		worked := d.book.WorkOutNext(start, last)
		last = 0
		if worked {
			last = d.clock.Since(start)
			metrics.ForecastSeconds.Observe(last.Seconds())
		}
		for role, gpus := range d.book.GPUsByRole() {
			metrics.HeldGPUs.WithLabelValues(string(role)).Set(float64(gpus))
		}
		wait, now := longest, d.clock.Now()
		if next, ok := d.book.Next(now); ok {
			wait = min(longest, max(least, next.Sub(now)))
		}
		select {
		case <-ctx.Done():
			return
		case <-d.book.Changed():
			if !pause(ctx, d.clock, breath) {
				return
			}
		case <-d.clock.After(wait):
		}
	}
}

// tidyReservations deletes Reservations that ended longer ago than closed GPU leases are kept, and counts those that
// wait.
func (d *dates) tidyReservations(ctx context.Context) {
	every(ctx, d.clock, 5*time.Second, func() {
		now, waiting, oldest := d.clock.Now(), 0, metav1.Time{}
		for _, o := range d.reservations.GetStore().List() {
			r := o.(*rqv1.Reservation)
			switch {
			case !r.Ended():
				waiting++
				if oldest.IsZero() || r.CreationTimestamp.Before(&oldest) {
					oldest = r.CreationTimestamp
				}
			case r.Status.EndedAt != nil && now.Sub(r.Status.EndedAt.Time) > d.retention:
				_ = d.client.Delete(ctx, r, client.Preconditions{UID: &r.UID}) // else next time: another may have the name
			}
		}
		metrics.ReservationsWaiting.Set(float64(waiting))
		age := time.Duration(0)
		if waiting > 0 {
			age = now.Sub(oldest.Time)
		}
		metrics.OldestReservation.Set(age.Seconds())
	})
}
