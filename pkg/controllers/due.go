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

const (
	// promisePeriod is how often promises are looked at that may have changed, and promises how many of them each time.
	promisePeriod = time.Second
	promises      = 8
)

// growthPeriod is how often it is looked whether Runs could grow, or idle GPUs be put to use.
const growthPeriod = time.Second

// dates has things happen whose time has come.
type dates struct {
	book         *book.Book
	client       client.Client
	clock        clock.Clock
	reservations cache.SharedInformer
	retention    time.Duration // of Reservations that have ended
}

// activate has Runs looked at whose date has come, until the context ends. It sleeps until the next one is due; a clock
// that jumps is noticed after a while.
func (d *dates) activate(ctx context.Context) {
	const longest = 15 * time.Second
	for {
		wait := longest
		if next, ok := d.book.NextDue(); ok {
			now := d.clock.Now()
			if !next.After(now) {
				d.book.Due(now)
				continue
			}
			wait = min(wait, next.Sub(now))
		}
		select {
		case <-ctx.Done():
			return
		case <-d.book.Dues():
		case <-d.clock.After(wait):
		}
	}
}

// refreshPromises works promises out again as the world changes, a few at a time.
func (d *dates) refreshPromises(ctx context.Context) {
	for pause(ctx, d.clock, promisePeriod) {
		d.book.RefreshPromises(d.clock.Now(), promises)
	}
}

// growRuns has Runs grow that could use the room that there is (R23), and shards of opportunistic Runs use what is left (R15).
func (d *dates) growRuns(ctx context.Context) {
	for pause(ctx, d.clock, growthPeriod) {
		d.book.Lapse(d.clock.Now())
		d.book.GrowRuns(d.clock.Now())
		d.book.Fill(d.clock.Now())
		for role, gpus := range d.book.GPUsByRole() {
			metrics.HeldGPUs.WithLabelValues(string(role)).Set(float64(gpus))
		}
	}
}

// watchWindows wakes Runs when a budget window opens or closes.
func (d *dates) watchWindows(ctx context.Context) {
	const longest = 2 * time.Second // bounds how late the window of an edited Budget, or a clock that jumped, is noticed
	seen, wait := d.clock.Now(), time.Duration(0)
	for pause(ctx, d.clock, wait) {
		now := d.clock.Now()
		wait = longest
		if next, ok := d.book.Budgets.NextWindow(seen); ok && !now.Before(next) {
			d.book.Budgets.WindowPassed()
			wait = 0 // another may be near
		} else if ok {
			wait = min(wait, next.Sub(now))
		}
		seen = now
	}
}

// tidyReservations deletes Reservations that ended longer ago than closed GPU leases are kept, and counts those that wait.
func (d *dates) tidyReservations(ctx context.Context) {
	every(ctx, d.clock, 5*time.Second, func() {
		now, waiting, oldest := d.clock.Now(), 0, metav1.Time{}
		for _, o := range d.reservations.GetStore().List() {
			r := o.(*rqv1.Reservation)
			switch {
			case !r.Ended():
				if waiting++; oldest.IsZero() || r.CreationTimestamp.Before(&oldest) {
					oldest = r.CreationTimestamp
				}
			case r.Status.EndedAt != nil && now.Sub(r.Status.EndedAt.Time) > d.retention:
				_ = d.client.Delete(ctx, r) // else next time
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
