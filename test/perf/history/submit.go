package history

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
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
			return l.api.Create(ctx, newRun(fmt.Sprintf("gang-%d", i), l.size.PodsPerGang))
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
	pods, err := l.kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
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

// megabytes returns what the process of a file that holds its id has in memory.
func megabytes(pidFile string) (float64, error) {
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		return 0, err
	}
	status, err := os.ReadFile("/proc/" + strings.Fields(string(pid))[0] + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); f[0] == "VmRSS:" {
			kilobytes, err := strconv.ParseFloat(f[1], 64)
			return kilobytes / 1024, err
		}
	}
	return 0, fmt.Errorf("process %s does not say what it has in memory", pid)
}
