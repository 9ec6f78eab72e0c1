package controllers

import (
	"context"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

const (
	// promisePeriod is how often promises are looked at that may have changed, and promises how many of them each time.
	promisePeriod = time.Second
	promises      = 8
)

// growthPeriod is how often it is looked whether Runs could grow, or idle GPUs be put to use.
const growthPeriod = time.Second

// activate has Runs looked at whose date has come, until the context ends. It sleeps until the next one is due; a clock
// that jumps is noticed after a while.
func (c *Controllers) activate(ctx context.Context) {
	const longest = 15 * time.Second
	for {
		wait := longest
		if next, ok := c.book.NextDue(); ok {
			now := c.clock.Now()
			if !next.After(now) {
				c.book.Due(now)
				continue
			}
			wait = min(wait, next.Sub(now))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.book.Dues():
		case <-c.clock.After(wait):
		}
	}
}

// refreshPromises works promises out again as the world changes, a few at a time.
func (c *Controllers) refreshPromises(ctx context.Context) {
	for pause(ctx, c.clock, promisePeriod) {
		c.book.Refresh(c.clock.Now(), promises)
	}
}

// growRuns has Runs grow that could use the room that there is (R23), and shards of opportunistic Runs use what is left (R15).
func (c *Controllers) growRuns(ctx context.Context) {
	for pause(ctx, c.clock, growthPeriod) {
		c.book.Lapse(c.clock.Now())
		c.book.Grow(c.clock.Now())
		c.book.Fill(c.clock.Now())
		for role, gpus := range c.book.HeldGPUs() {
			metrics.HeldGPUs.WithLabelValues(string(role)).Set(float64(gpus))
		}
	}
}
