package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// nodeWords tells, as an event on the node, what is wrong with it.
type nodeWords struct {
	book   *book.Book
	events events.EventRecorder
	clock  clock.Clock
}

// watch tells of each node once for as long as the same is wrong with it, until the context ends.
func (w *nodeWords) watch(ctx context.Context) {
	told := map[reconcile.NodeWord]bool{}
	every(ctx, w.clock, 5*time.Second, func() {
		was := told
		told = map[reconcile.NodeWord]bool{}
		for _, word := range reconcile.NodeWords(w.book) {
			if !was[word] && !told[word] {
				tellNode(w.events, word.Node, corev1.EventTypeWarning, word.Reason, word.Text)
			}
			told[word] = true
		}
	})
}
