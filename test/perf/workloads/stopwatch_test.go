package workloads

import (
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// stopwatch times one workload at a time.
type stopwatch struct {
	gangs, podsPerGang int
	bound              atomic.Int32
	// done is closed when every pod is bound; first and last are written before that.
	done        chan struct{}
	first, last time.Time
	// submitted is when the first Run was sent.
	submitted time.Time
}

// reset reads the size of the workload that is about to run.
func (s *stopwatch) reset(_ ktesting.TContext, w *perf.Workload) (func(), error) {
	gangs, err := w.GetParam("gangs")
	if err != nil {
		return nil, err
	}
	podsPerGang, err := w.GetParam("podsPerGang")
	if err != nil {
		return nil, err
	}
	*s = stopwatch{gangs: gangs, podsPerGang: podsPerGang, done: make(chan struct{})}
	return nil, nil
}

// start sets the beginning to now. Without it the first pod that appears is the beginning.
func (s *stopwatch) start() { s.submitted = time.Now() }

// elapsed is the whole duration, once done.
func (s *stopwatch) elapsed() time.Duration {
	if s.submitted.IsZero() {
		return s.last.Sub(s.first)
	}
	return s.last.Sub(s.submitted)
}

func (s *stopwatch) pods() int { return s.gangs * s.podsPerGang }

// watch begins to count the pods that are bound.
func (s *stopwatch) watch(tCtx ktesting.TContext) error {
	pods, err := tCtx.Client().CoreV1().Pods(namespace).Watch(tCtx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("watching the pods: %w", err)
	}
	go func() {
		defer pods.Stop()
		s.count(pods.ResultChan())
	}()
	return nil
}

// count returns when every pod is bound, or when the watch ends.
func (s *stopwatch) count(events <-chan watch.Event) {
	bound := map[types.UID]bool{}
	for event := range events {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		now := time.Now()
		if s.first.IsZero() {
			s.first = now
		}
		if pod.Spec.NodeName == "" || bound[pod.UID] {
			continue
		}
		bound[pod.UID] = true
		s.bound.Add(1)
		if len(bound) == s.pods() {
			s.last = now
			close(s.done)
			return
		}
	}
}

// wait until every pod is bound, for at most the given time.
func (s *stopwatch) wait(tCtx ktesting.TContext, limit time.Duration) error {
	select {
	case <-s.done:
		return nil
	case <-tCtx.Done():
		return fmt.Errorf("the workload was stopped with %d of %d pods bound", s.bound.Load(), s.pods())
	case <-time.After(limit):
		return fmt.Errorf("after %v only %d of %d pods are bound", limit, s.bound.Load(), s.pods())
	}
}
