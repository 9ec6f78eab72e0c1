package history

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// submit submits all Runs and returns how many seconds it took until the last of their pods was bound.
func (l *lab) submit(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began, submitted := time.Now(), make(chan error, 1)
	go func() {
		submitted <- inParallel(ctx, l.size.Gangs, func(ctx context.Context, i int) error {
			return l.API.Create(ctx, newRun(fmt.Sprintf("gang-%d", i), l.size.PodsPerGang))
		})
	}()
	bound := map[string]bool{}
	for len(bound) < l.size.Gangs*l.size.PodsPerGang {
		if err := l.watch(ctx, bound); err != nil {
			return 0, fmt.Errorf("%d pods were bound: %w", len(bound), err)
		}
	}
	return time.Since(began).Seconds(), <-submitted
}

// watch notes the pods that are bound until all are. It may end before, as watches do; another one tells of all there
// are.
func (l *lab) watch(ctx context.Context, bound map[string]bool) error {
	pods, err := l.Kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer pods.Stop()
	for event := range pods.ResultChan() {
		if pod, is := event.Object.(*corev1.Pod); is && pod.Spec.NodeName != "" {
			bound[pod.Name] = true
		}
		if len(bound) == l.size.Gangs*l.size.PodsPerGang {
			break
		}
	}
	return ctx.Err()
}
