package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// outages tells, as an event on the node, that the maintenance which its annotations announce counts for nothing, or
// that the node cannot be emptied yet (R35).
type outages struct {
	book   *book.Book
	events events.EventRecorder
	clock  clock.Clock
}

// watch tells of each node once for as long as the same is wrong with it, until the context ends.
func (o *outages) watch(ctx context.Context) {
	told := map[string]string{}
	every(ctx, o.clock, 5*time.Second, func() {
		was := told
		told = map[string]string{}
		for _, m := range o.book.MisannouncedNodes() {
			told[m.Node] = m.Problem
			if was[m.Node] != m.Problem {
				tellNode(o.events, m.Node, corev1.EventTypeWarning, "MaintenanceIgnored",
					"jobtree does not see this maintenance coming: "+m.Problem)
			}
		}
		for _, d := range o.book.StuckDrains() {
			about, why := d.Node+" "+d.Run, "the drain waits for Run "+d.Run+": "+d.Why
			told[about] = why
			if was[about] != why {
				tellNode(o.events, d.Node, corev1.EventTypeWarning, "DrainWaits", why)
			}
		}
	})
}
