package controllers

import (
	"context"
	"time"

	"k8s.io/utils/clock"

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
	book  *book.Book
	clock clock.Clock
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
		d.book.Refresh(d.clock.Now(), promises)
	}
}

// growRuns has Runs grow that could use the room that there is (R23), and shards of opportunistic Runs use what is left (R15).
func (d *dates) growRuns(ctx context.Context) {
	for pause(ctx, d.clock, growthPeriod) {
		d.book.Lapse(d.clock.Now())
		d.book.Grow(d.clock.Now())
		d.book.Fill(d.clock.Now())
		for role, gpus := range d.book.HeldGPUs() {
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
		if next, ok := d.book.NextWindow(seen); ok && !now.Before(next) {
			d.book.WindowPassed()
			wait = 0 // another may be near
		} else if ok {
			wait = min(wait, next.Sub(now))
		}
		seen = now
	}
}
