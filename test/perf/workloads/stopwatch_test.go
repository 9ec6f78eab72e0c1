package workloads

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// instant is a point on the wall clock and on this process's processor time.
type instant struct {
	wall time.Time
	cpu  time.Duration
}

func now() instant {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // fails for invalid arguments only
	return instant{wall: time.Now(), cpu: time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}
}

// stopwatch times one workload at a time.
type stopwatch struct {
	gangs, podsPerGang int
	bound              atomic.Int32
	// done is closed when every pod is bound or when that has become impossible; first, last and err are written before.
	done        chan struct{}
	first, last instant
	err         error
	// submitted is when the first Run was sent.
	submitted instant
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
func (s *stopwatch) start() { s.submitted = now() }

// elapsed returns the whole duration and the processor time spent in it, once done.
func (s *stopwatch) elapsed() (wall, cpu time.Duration) {
	begin := s.submitted
	if begin.wall.IsZero() {
		begin = s.first
	}
	return s.last.wall.Sub(begin.wall), s.last.cpu - begin.cpu
}

func (s *stopwatch) pods() int { return s.gangs * s.podsPerGang }

// watch begins to count the pods that are bound. It uses an informer, because the API server drops watchers that cannot
// keep up with a thousand pods at once, and an informer resumes.
func (s *stopwatch) watch(tCtx ktesting.TContext) error {
	factory := informers.NewSharedInformerFactoryWithOptions(tCtx.Client(), 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods().Informer()
	bound := map[types.UID]bool{}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.see(bound, obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { s.see(bound, obj.(*corev1.Pod)) },
	})
	if err != nil {
		return err
	}
	factory.Start(tCtx.Done())
	if !cache.WaitForCacheSync(tCtx.Done(), pods.HasSynced) {
		return errors.New("the pods cannot be watched")
	}
	return nil
}

// see takes note of a pod; bound holds the pods that are bound already.
func (s *stopwatch) see(bound map[types.UID]bool, pod *corev1.Pod) {
	if s.first.wall.IsZero() {
		s.first = now()
	}
	select {
	case <-s.done:
		return
	default:
	}
	if pod.DeletionTimestamp != nil {
		// No kubelet ends it, so that a gang which is taken back can never start again here.
		s.err = fmt.Errorf("pod %s is deleted, with %d of %d pods bound", pod.Name, len(bound), s.pods())
		close(s.done)
		return
	}
	if pod.Spec.NodeName == "" || bound[pod.UID] {
		return
	}
	bound[pod.UID] = true
	s.bound.Add(1)
	if len(bound) == s.pods() {
		s.last = now()
		close(s.done)
	}
}

// wait until every pod is bound, for at most the given time.
func (s *stopwatch) wait(tCtx ktesting.TContext, limit time.Duration) error {
	select {
	case <-s.done:
		return s.err
	case <-tCtx.Done():
		return fmt.Errorf("the workload was stopped with %d of %d pods bound", s.bound.Load(), s.pods())
	case <-time.After(limit):
		return fmt.Errorf("after %v only %d of %d pods are bound", limit, s.bound.Load(), s.pods())
	}
}
