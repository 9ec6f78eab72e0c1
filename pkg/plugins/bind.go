package plugins

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var _ fwk.BindPlugin = &Jobtree{}

// Bind binds a rank as kube-scheduler's own plugin does, and tells it in the same write how many ranks its Run has. It
// leaves all other pods to that plugin.
func (pl *Jobtree) Bind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	ranks := 0
	if ours(pod) {
		ranks = pl.book.Ranks(pod.UID)
	}
	if ranks == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			Annotations: map[string]string{rqv1.AnnotationWorldSize: strconv.Itoa(ranks)}},
		Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}
	return fwk.AsStatus(pl.turnstile.let(ctx, pod, func() error { return pl.write(ctx, binding) }))
}

func (pl *Jobtree) write(ctx context.Context, binding *corev1.Binding) error {
	calls := pl.handle.APICacher()
	if calls == nil {
		return util.BindPod(ctx, pl.handle.ClientSet(), binding)
	}
	done, err := calls.BindPod(binding)
	if err != nil {
		return err
	}
	return calls.WaitOnFinish(ctx, done)
}
