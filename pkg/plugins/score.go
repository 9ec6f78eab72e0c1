package plugins

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

var _ fwk.ScorePlugin = &Jobtree{}

// Score packs to empty: of the nodes that fit a pod without an assignment, the fullest is best (R13).
func (pl *Jobtree) Score(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return pl.book.Fullness(node.Node().Name, fwk.MaxScore), nil
}

// ScoreExtensions returns nil: scores need no normalizing.
func (pl *Jobtree) ScoreExtensions() fwk.ScoreExtensions { return nil }
