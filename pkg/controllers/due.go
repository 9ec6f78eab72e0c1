package controllers

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// dates has things happen whose time has come.
type dates struct {
	book         *book.Book
	client       client.Client
	clock        clock.Clock
	doubt        *clockDoubt
	reservations *reservationAges
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
