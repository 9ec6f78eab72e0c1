package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// reportLeftOut tells, as an event on the node, that it is left out for want of a label (R11).
func (n *nodes) reportLeftOut(ctx context.Context) {
	told := map[string]string{}
	every(ctx, n.clock, 5*time.Second, func() {
		for _, out := range n.book.LeftOutNodes() {
			if told[out.Node] == out.Reason {
				continue
			}
			told[out.Node] = out.Reason
			tellNode(n.events, out.Node, corev1.EventTypeWarning, "LeftOut", "jobtree places nothing here: "+out.Reason)
		}
	})
}
