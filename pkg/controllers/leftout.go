package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// leftOut tells, as an event on the node, that it is left out for want of a label (R11).
type leftOut struct {
	book   *book.Book
	events events.EventRecorder
	clock  clock.Clock
}

// watch tells of each node and reason once, until the context ends.
func (l *leftOut) watch(ctx context.Context) {
	told := map[string]string{}
	every(ctx, l.clock, 5*time.Second, func() {
		for _, out := range l.book.LeftOutNodes() {
			if told[out.Node] == out.Reason {
				continue
			}
			told[out.Node] = out.Reason
			tellNode(l.events, out.Node, corev1.EventTypeWarning, "LeftOut", "jobtree places nothing here: "+out.Reason)
		}
	})
}
