package plugins

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulingqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// listening is a log that calls somebody with what is said.
type listening struct{ hear func(what string) }

func (listening) Init(klog.RuntimeInfo)                  {}
func (listening) Enabled(int) bool                       { return true }
func (l listening) Info(_ int, what string, _ ...any)    { l.hear(what) }
func (l listening) Error(_ error, what string, _ ...any) { l.hear(what) }
func (l listening) WithValues(...any) klog.LogSink       { return l }
func (l listening) WithName(string) klog.LogSink         { return l }

func logTo(hear func(what string)) klog.Logger { return klog.New(listening{hear}) }

func byAge(x, y fwk.QueuedEntityInfo) bool { return x.GetTimestamp().Before(y.GetTimestamp()) }

// popped is the pod that is tried next.
func popped(t *testing.T, q schedulingqueue.SchedulingQueue, log klog.Logger) *framework.QueuedPodInfo {
	t.Helper()
	entity, err := q.Pop(log)
	if err != nil {
		t.Error(err)
	}
	info, _ := entity.(*framework.QueuedPodInfo)
	return info
}

// TestAPodThatComesBackIsKept has a pod come back from the barrier, and be called meanwhile, just as the scheduler
// looks for the next pod to try: it is tried again.
func TestAPodThatComesBackIsKept(t *testing.T) {
	metrics.Register()
	quiet := logTo(func(string) {})
	inner := schedulingqueue.NewTestQueue(t.Context(), byAge)
	s := &scheduler.Scheduler{SchedulingQueue: inner}
	KeepPods(s)
	pod := rankOf("run", 0)
	s.SchedulingQueue.Add(t.Context(), pod)
	info := popped(t, s.SchedulingQueue, quiet)
	s.SchedulingQueue.Activate(quiet, map[string]*corev1.Pod{"ns/run-0": pod})

	again, dropped := make(chan *framework.QueuedPodInfo, 1), make(chan struct{})
	drop := sync.OnceFunc(func() { close(dropped) })
	next := sync.OnceFunc(func() {
		go func() {
			again <- popped(t, inner, logTo(func(what string) {
				if what == "Discarding the popped entity" {
					drop()
				}
			}))
		}()
		<-dropped
	})
	info.UnschedulablePlugins = sets.New(Name)
	err := s.SchedulingQueue.AddUnschedulablePodIfNotPresent(logTo(func(what string) {
		if what == "Pod moved to an internal scheduling queue" {
			next() // its last try is not over yet
		}
	}), info, 0)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-again:
		if got == nil || got.Pod.UID != pod.UID {
			t.Errorf("tried next: %v", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the pod is not tried again")
	}
	inner.Close()
}

// TestAPodThatComesBackIsTriedOnce has a pod come back that nobody calls: it is left where the queue has put it.
func TestAPodThatComesBackIsTriedOnce(t *testing.T) {
	metrics.Register()
	quiet := logTo(func(string) {})
	inner := schedulingqueue.NewTestQueue(t.Context(), byAge)
	s := &scheduler.Scheduler{SchedulingQueue: inner}
	KeepPods(s)
	s.SchedulingQueue.Add(t.Context(), rankOf("run", 0))
	info := popped(t, s.SchedulingQueue, quiet)
	info.UnschedulablePlugins = sets.New(Name)
	if err := s.SchedulingQueue.AddUnschedulablePodIfNotPresent(quiet, info, 0); err != nil {
		t.Fatal(err)
	}
	if active, rests := inner.PodsInActiveQ(), inner.UnschedulablePods(); len(active) != 0 || len(rests) != 1 {
		t.Errorf("to be tried: %v, at rest: %v", active, rests)
	}
}
