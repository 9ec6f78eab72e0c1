package controllers

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// contactPeriod is the longest time between two signs of life that the API server is asked for.
const contactPeriod = 10 * time.Second

// contact is since when the API server has answered without interruption. What was not heard while it did not, or while
// this process was stopped, is nobody's silence.
type contact struct {
	period time.Duration // between two questions

	mu                 sync.Mutex
	first, since, last time.Time // first is the first since that there was
}

// keep asks the API server for a sign of life again and again, until the context ends.
func (c *contact) keep(ctx context.Context, kube kubernetes.Interface, clock clock.Clock) {
	every(ctx, clock, c.period, func() { c.hear(responds(ctx, kube, c.period), clock.Now()) })
}

// responds reports whether the API server answers within a time.
func responds(ctx context.Context, kube kubernetes.Interface, within time.Duration) bool {
	asked, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := kube.CoreV1().Nodes().List(asked, metav1.ListOptions{Limit: 1})
	return err == nil
}

// hear notes an answer of the API server, or that there was none.
func (c *contact) hear(answered bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !answered:
		c.since, c.last = time.Time{}, time.Time{}
	case !c.lasts(now):
		c.since, c.last = now, now
	default:
		c.last = now
	}
	if c.first.IsZero() {
		c.first = c.since
	}
}

// lasts reports whether the API server has answered of late. The lock is held.
func (c *contact) lasts(now time.Time) bool { return !c.last.IsZero() && now.Sub(c.last) <= 3*c.period }

// held returns since when the API server has answered; false if it has not of late.
func (c *contact) held(now time.Time) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.lasts(now)
}

// settled reports whether the API server has answered without interruption for a time, or ever since it first did.
func (c *contact) settled(now time.Time, rest time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lasts(now) && (c.since.Equal(c.first) || now.Sub(c.since) >= rest)
}
