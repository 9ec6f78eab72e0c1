package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// giveBack gives those nodes back that were lost by a checker's sign which is gone, and that nobody else has cordoned
// (R26).
func (n *nodeJudge) giveBack(ctx context.Context, names []string) {
	var back []string
	for _, name := range names {
		if n.isBack(name, n.clock.Now()) {
			back = append(back, name)
		}
	}
	_ = inParallel(len(back), func(i int) error {
		err := n.uncordon(ctx, back[i])
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Retrying to use a node again", "node", back[i], "err", err)
			n.seen.queue.AddAfter(back[i], retryNode)
		}
		return err
	})
}

// isBack reports whether a node is to be given back now. If it is going to be it is looked at then; what it was lost
// with is closed before.
func (n *nodeJudge) isBack(name string, now time.Time) bool {
	from := n.seen.back(name)
	if from.IsZero() {
		return false
	}
	wait := from.Sub(now)
	if holding, err := n.leases.GetIndexer().IndexKeys(byNode, name); err != nil || len(holding) > 0 {
		wait = max(wait, retryNode)
	}
	if wait > 0 {
		n.seen.queue.AddAfter(name, wait+debounce)
	}
	return wait <= 0
}

// uncordon takes the record and the cordon off a node at once, if the API server itself says that it is to be given
// back, and that of the node as it is then: whoever cordons it meanwhile keeps it.
func (n *nodeJudge) uncordon(ctx context.Context, name string) error {
	node, err := n.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ignore(err, apierrors.IsNotFound)
	}
	now := n.clock.Now()
	n.seen.see(node, now)
	if !n.isBack(name, now) {
		return nil
	}
	if err := patchNode(ctx, n.kube, name, map[string]any{
		"metadata": map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion, "annotations": noRecord},
		"spec":     map[string]any{"unschedulable": nil},
	}); err != nil {
		return fmt.Errorf("giving node %s back: %w", name, err)
	}
	tellNode(n.events, name, corev1.EventTypeNormal, "GivenBack",
		"jobtree uses the node again: the sign of its loss is gone")
	return nil
}
