package book_test

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// lose has nodes found to be lost, all at once, as the controller does: they are cordoned with a record.
func (w *world) lose(names ...string) {
	w.book.Lose(names)
	for _, name := range names {
		node := w.nodes[name].DeepCopy()
		node.Spec.Unschedulable = true
		node.Annotations = map[string]string{rqv1.AnnotationLost: nodeloss.Record(nodeloss.Verdict{Reason: nodeloss.Stale}, w.now)}
		w.nodes[name] = node
		w.book.SetNode(node)
	}
}

// forgive has a person uncordon a node.
func (w *world) forgive(name string) {
	node := w.nodes[name].DeepCopy()
	node.Spec.Unschedulable = false
	w.nodes[name] = node
	w.book.SetNode(node)
}

// lost reports whether a node does not exist or is recorded as lost.
func (w *world) lost(name string) bool {
	if w.nodes[name] == nil {
		return true
	}
	_, lost := nodeloss.Recorded(w.nodes[name])
	return lost
}

var _ = time.Second
