package backlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// reportEvery is the time between two reports of how far the work has come.
const reportEvery = 15 * time.Second

// life is when a Run was submitted, when its pod was first seen on a node, and when it was first seen as ended.
type life struct{ submitted, bound, ended time.Time }

// view is what watches tell of Runs.
type view struct {
	mu           sync.Mutex
	runs         map[string]life
	bound, ended int
	failed       error
}

func newView() *view { return &view{runs: map[string]life{}} }

// follow watches pods and Runs until the context ends, and returns once that has begun.
func (l *lab) follow(ctx context.Context) error {
	shared := informers.NewSharedInformerFactoryWithOptions(l.Kube, 0, informers.WithNamespace(namespace))
	pods := shared.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { l.view.setPod(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { l.view.setPod(o.(*corev1.Pod)) },
	}); err != nil {
		return err
	}
	runs := cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &rqv1.RunList{}
			return list, l.API.List(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &raw})
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return l.API.Watch(ctx, &rqv1.RunList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &raw})
		},
	}, &rqv1.Run{}, 0)
	if _, err := runs.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { l.view.setRun(o.(*rqv1.Run)) },
		UpdateFunc: func(_, o any) { l.view.setRun(o.(*rqv1.Run)) },
	}); err != nil {
		return err
	}
	shared.Start(ctx.Done())
	go runs.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, runs.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

func (v *view) submit(run string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.runs[run] = life{submitted: time.Now()}
}

func (v *view) setPod(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	now, run := time.Now(), pod.Labels[rqv1.LabelRun]
	v.mu.Lock()
	defer v.mu.Unlock()
	if l := v.runs[run]; l.bound.IsZero() {
		l.bound = now
		v.runs[run] = l
		v.bound++
	}
}

func (v *view) setRun(run *rqv1.Run) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	switch l := v.runs[run.Name]; {
	case !run.Ended() || !l.ended.IsZero():
	case run.Status.Phase != rqv1.RunCompleted:
		v.failed = errors.Join(v.failed, fmt.Errorf("Run %s is %s: %s", run.Name, run.Status.Phase, run.Status.Message))
	default:
		l.ended = now
		v.runs[run.Name] = l
		v.ended++
	}
}

// forget begins anew.
func (v *view) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.runs)
	v.bound, v.ended = 0, 0
}

// until waits until so many Runs have ended, and reports now and then.
func (v *view) until(ctx context.Context, runs int, report func(bound, ended int)) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	reported := time.Now()
	for {
		v.mu.Lock()
		bound, ended, failed := v.bound, v.ended, v.failed
		v.mu.Unlock()
		if failed != nil || ended >= runs {
			return failed
		}
		if time.Since(reported) >= reportEvery {
			report(bound, ended)
			reported = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d Runs have ended: %w", ended, runs, context.Cause(ctx))
		case <-look.C:
		}
	}
}

func (v *view) lastEnd() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	byEnd := func(x, y life) int { return x.ended.Compare(y.ended) }
	return slices.MaxFunc(slices.Collect(maps.Values(v.runs)), byEnd).ended
}

// waited returns how long the Runs of a class waited.
func (v *view) waited(name string) Class {
	v.mu.Lock()
	defer v.mu.Unlock()
	var waits []float64
	sum := 0.0
	for run, l := range v.runs {
		if strings.HasPrefix(run, name+"-") {
			seconds := l.bound.Sub(l.submitted).Seconds()
			waits, sum = append(waits, seconds), sum+seconds
		}
	}
	slices.Sort(waits)
	n := len(waits)
	return Class{Name: name, Runs: n, Mean: sum / float64(n), P95: waits[int(math.Ceil(0.95*float64(n)))-1]}
}
