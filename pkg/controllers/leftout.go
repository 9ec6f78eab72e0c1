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

// watch tells of each node once for as long as it is left out for the same reason, until the context ends.
func (l *leftOut) watch(ctx context.Context) {
	told := map[string]string{}
	every(ctx, l.clock, 5*time.Second, func() {
		was := told
		told = map[string]string{}
		for _, out := range l.book.LeftOutNodes() {
			told[out.Node] = out.Reason
			if was[out.Node] == out.Reason {
				continue
			}
			tellNode(l.events, out.Node, corev1.EventTypeWarning, "LeftOut", "jobtree places nothing here: "+out.Reason)
		}
	})
}
