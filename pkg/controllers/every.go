package controllers

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// debounce is how long events about one Run or node are gathered before it is looked at: a gang that starts makes many
// at once, and so does a rack that is lost.
const debounce = 20 * time.Millisecond

// every does something at once and then again and again, a period apart, until the context ends.
func every(ctx context.Context, clock clock.Clock, period time.Duration, do func()) {
	for do(); pause(ctx, clock, period); do() {
	}
}

// pause lets time go by, and reports whether it has: not when the context has ended.
func pause(ctx context.Context, clock clock.Clock, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-clock.After(d):
		return ctx.Err() == nil
	}
}
