package plugins

import (
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	schedulingqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// listening is written a log to, and calls somebody with each line.
type listening struct{ hear func(line string) }

func (l listening) Write(line []byte) (int, error) {
	l.hear(string(line))
	return len(line), nil
}

func logTo(hear func(line string)) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(listening{hear}), textlogger.Verbosity(10)))
}

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

// listerOf lists some pods.
func listerOf(t *testing.T, pods ...*corev1.Pod) corelisters.PodLister {
	t.Helper()
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, pod := range pods {
		if err := index.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewPodLister(index)
}

var quiet = logTo(func(string) {})

// comesBack has a pod be tried in a scheduler whose queue keeps pods, in which some pods are there by the time that it
// comes back.
func comesBack(t *testing.T, inner schedulingqueue.SchedulingQueue, known internalcache.Cache, pod *corev1.Pod,
	by ...*corev1.Pod) (schedulingqueue.SchedulingQueue, *framework.QueuedPodInfo) {
	t.Helper()
	s := &scheduler.Scheduler{SchedulingQueue: inner, Cache: known}
	keepPods(s, listerOf(t, by...))
	s.SchedulingQueue.Add(t.Context(), pod)
	info := popped(t, s.SchedulingQueue, quiet)
	info.UnschedulablePlugins = sets.New(Name)
	return s.SchedulingQueue, info
}

// TestAPodThatComesBackIsKept has a pod come back from the barrier, and be called meanwhile, just as the scheduler
// looks for the next pod to try: it is tried again.
func TestAPodThatComesBackIsKept(t *testing.T) {
	inner := schedulingqueue.NewTestQueue(t.Context(), byAge)
	pod := rankOf("run", 0)
	q, info := comesBack(t, inner, internalcache.New(t.Context(), nil, false, false), pod, pod)
	q.Activate(quiet, map[string]*corev1.Pod{"ns/run-0": pod})

	again, dropped := make(chan *framework.QueuedPodInfo, 1), make(chan struct{})
	drop := sync.OnceFunc(func() { close(dropped) })
	next := sync.OnceFunc(func() {
		go func() {
			again <- popped(t, inner, logTo(func(line string) {
				if strings.Contains(line, "Discarding the popped entity") {
					drop()
				}
			}))
		}()
		<-dropped
	})
	err := q.AddUnschedulablePodIfNotPresent(logTo(func(line string) {
		if strings.Contains(line, "Pod moved to an internal scheduling queue") {
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
	inner := schedulingqueue.NewTestQueue(t.Context(), byAge)
	pod := rankOf("run", 0)
	q, info := comesBack(t, inner, internalcache.New(t.Context(), nil, false, false), pod, pod)
	if err := q.AddUnschedulablePodIfNotPresent(quiet, info, 0); err != nil {
		t.Fatal(err)
	}
	if active, rests := inner.PodsInActiveQ(), inner.UnschedulablePods(); len(active) != 0 || len(rests) != 1 {
		t.Errorf("to be tried: %v, at rest: %v", active, rests)
	}
}

// goingOn is a queue where much goes on before whoever brings a pod back looks for it.
type goingOn struct {
	schedulingqueue.SchedulingQueue
	meanwhile func()
}

func (q goingOn) AddUnschedulablePodIfNotPresent(log klog.Logger, info *framework.QueuedPodInfo, cycle int64) error {
	err := q.SchedulingQueue.AddUnschedulablePodIfNotPresent(log, info, cycle)
	q.meanwhile()
	return err
}

// TestAPodThatIsDoneWithIsNotTriedAgain: one that comes back, and has a place or is gone before it is looked for.
func TestAPodThatIsDoneWithIsNotTriedAgain(t *testing.T) {
	for name, becomes := range map[string]func(*corev1.Pod, internalcache.Cache) []*corev1.Pod{
		"gone": func(*corev1.Pod, internalcache.Cache) []*corev1.Pod { return nil },
		"another": func(pod *corev1.Pod, _ internalcache.Cache) []*corev1.Pod {
			pod.UID = "another"
			return []*corev1.Pod{pod}
		},
		"bound": func(pod *corev1.Pod, _ internalcache.Cache) []*corev1.Pod {
			pod.Spec.NodeName = "n0"
			return []*corev1.Pod{pod}
		},
		"leaving": func(pod *corev1.Pod, _ internalcache.Cache) []*corev1.Pod {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			return []*corev1.Pod{pod}
		},
		"assumed": func(pod *corev1.Pod, c internalcache.Cache) []*corev1.Pod {
			on := pod.DeepCopy()
			on.Spec.NodeName = "n0"
			if err := c.AssumePod(quiet, on); err != nil {
				t.Fatal(err)
			}
			return []*corev1.Pod{pod}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inner := schedulingqueue.NewTestQueue(t.Context(), byAge)
			pod, known := rankOf("run", 0), internalcache.New(t.Context(), nil, false, false)
			busy := goingOn{inner, func() {
				inner.Activate(quiet, map[string]*corev1.Pod{"ns/run-0": pod})
				if info := popped(t, inner, quiet); info != nil {
					inner.Done(info.Pod.UID)
				}
			}}
			kept, info := comesBack(t, busy, known, pod, becomes(pod.DeepCopy(), known)...)
			if err := kept.AddUnschedulablePodIfNotPresent(quiet, info, 0); err != nil {
				t.Fatal(err)
			}
			if _, queued := inner.GetPod(pod.Name, pod.Namespace, nil); queued {
				t.Error("it is to be tried again")
			}
		})
	}
}
