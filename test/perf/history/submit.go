package history

import (
	"context"
	"errors"
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
	pods, err := l.kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	defer pods.Stop()
	began, failed := time.Now(), make(chan error, 1)
	go func() {
		failed <- inParallel(ctx, l.size.Gangs, func(ctx context.Context, i int) error {
			return l.api.Create(ctx, newRun(fmt.Sprintf("gang-%d", i), l.size.PodsPerGang))
		})
	}()
	bound := map[string]bool{}
	for len(bound) < l.size.Gangs*l.size.PodsPerGang {
		select {
		case event, open := <-pods.ResultChan():
			if !open {
				return 0, errors.New("the watch of pods ended")
			}
			if pod, is := event.Object.(*corev1.Pod); is && pod.Spec.NodeName != "" {
				bound[pod.Name] = true
			}
		case err := <-failed:
			if err != nil {
				return 0, err
			}
			failed = nil
		case <-ctx.Done():
			return 0, fmt.Errorf("%d pods were bound: %w", len(bound), ctx.Err())
		}
	}
	return time.Since(began).Seconds(), nil
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
