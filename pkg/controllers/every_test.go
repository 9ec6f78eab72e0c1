package controllers

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestEvery counts what is done as time goes by, up to and after the end of the context.
func TestEvery(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	ctx, end := context.WithCancel(t.Context())
	done, over := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(over)
		every(ctx, clock, time.Minute, func() { done <- clock.Now() })
	}()
	for i := range 3 {
		if at, want := <-done, noon.Add(time.Duration(i)*time.Minute); !at.Equal(want) {
			t.Errorf("done at %s, want %s", at, want)
		}
		for !clock.HasWaiters() {
			select {
			case at := <-done:
				t.Fatalf("done at %s, before its time", at)
			default:
			}
		}
		if i < 2 {
			clock.Step(time.Minute)
		}
	}
	end()
	<-over
	if pause(ctx, clock, 0) {
		t.Error("time goes by after the end")
	}
}
