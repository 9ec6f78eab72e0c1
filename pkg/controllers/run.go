package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// workers is how many Runs are reconciled at once. More of them would take the API server away from pods that are being
// bound.
const workers = 4

// reconciler has Runs reconciled that have changed, several at a time.
type reconciler struct {
	watches *watches
	book    *book.Book
	order   *reconcile.Runs
	tell    statusWriter
	gone    endedPods
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	retries workqueue.TypedDelayingInterface[types.NamespacedName]
	decides atomic.Bool
}

// newReconciler returns what reconciles the Runs that some watches see. lost is told of Budgets whose records have
// changed.
func newReconciler(o *Options, w *watches, lost func(budgets []string)) *reconciler {
	r := &reconciler{watches: w, book: o.Book,
		tell:    statusWriter{client: o.Client, events: o.events, clock: o.Clock, written: &sync.Map{}},
		queue:   newRunQueue(),
		retries: workqueue.NewTypedDelayingQueue[types.NamespacedName](),
	}
	r.order = reconcile.New(o.Book, newAPI(o, &r.gone, r.tell, lost), lifecycle.RulesOf(o.Args), o.Clock.Now)
	return r
}

func newRunQueue() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](50*time.Millisecond, 10*time.Second),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "runs"})
}

// changed has a Run looked at soon. A process that does not decide yet keeps no list: it stands by for as long as
// another leads, while Runs come and go.
func (r *reconciler) changed(run types.NamespacedName) {
	if r.decides.Load() {
		r.queue.AddAfter(run, debounce)
	}
}

// begin has every Run looked at, also those of which only pods, Leases or Reservations are left: this process decides
// from now on.
func (r *reconciler) begin() {
	r.decides.Store(true)
	names := r.watches.runs.GetStore().ListKeys()
	for _, of := range []cache.SharedIndexInformer{r.watches.pods, r.watches.leases, r.watches.reservations} {
		names = append(names, of.GetIndexer().ListIndexFuncValues(byRun)...)
	}
	for _, key := range names {
		namespace, name, _ := cache.SplitMetaNamespaceKey(key) // they are not malformed
		r.changed(types.NamespacedName{Namespace: namespace, Name: name})
	}
}

// followGone notes what an informer of pods is told. What it finds out from a list after a watch was broken off is
// left out.
func (r *reconciler) followGone(pods cache.SharedInformer) error {
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: r.tellGone}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

// tellGone notes that a pod is gone, if this process may have to close its Lease.
func (r *reconciler) tellGone(o any) {
	if pod, told := o.(*corev1.Pod); told && r.decides.Load() {
		r.gone.add(runOfPod(pod), pod.UID)
	}
}

// work reconciles one Run after the other until the queue is shut down.
func (r *reconciler) work(ctx context.Context) {
	for {
		run, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		after, err := r.reconcile(ctx, run)
		switch {
		case err != nil:
			klog.FromContext(ctx).V(2).Info("Run is to be looked at again", "run", run, "err", err)
			r.queue.AddRateLimited(run)
		default:
			r.queue.Forget(run)
			if after > 0 {
				r.queue.AddAfter(run, after)
			}
		}
		r.queue.Done(run)
	}
}

// retry has Runs planned again when their time has come.
func (r *reconciler) retry() {
	for {
		run, shutdown := r.retries.Get()
		if shutdown {
			return
		}
		r.book.Retry(run)
		r.retries.Done(run)
	}
}

// shutDown ends work and retry.
func (r *reconciler) shutDown() {
	r.queue.ShutDown()
	r.retries.ShutDown()
}

// reconcile brings one Run a decision further. It returns when to look again without an event; 0 for never.
func (r *reconciler) reconcile(ctx context.Context, name types.NamespacedName) (time.Duration, error) {
	objects, err := r.cached(name)
	if err != nil {
		return 0, err
	}
	if r.tell.behind(name, objects.Run) {
		return 0, nil // the Run's own event looks again
	}
	outcome, err := r.order.Reconcile(ctx, objects)
	r.gone.keep(name, objects.Leases)
	if outcome.Retry > 0 {
		r.retries.AddAfter(name, outcome.Retry)
	}
	if outcome.Unsaid != nil {
		r.tell.unsaid(ctx, objects.Run, outcome.Unsaid)
	}
	return outcome.After, err
}

// cached gathers what the caches hold of a Run.
func (r *reconciler) cached(name types.NamespacedName) (book.Objects, error) {
	o := book.Objects{Name: name}
	if run, ok, err := r.watches.runs.GetStore().GetByKey(name.String()); err != nil {
		return o, err
	} else if ok {
		o.Run = run.(*rqv1.Run)
	}
	var errs [3]error
	o.Pods, errs[0] = ofRun[corev1.Pod](r.watches.pods, name)
	o.Leases, errs[1] = ofRun[rqv1.Lease](r.watches.leases, name)
	o.Reservations, errs[2] = ofRun[rqv1.Reservation](r.watches.reservations, name)
	return o, errors.Join(errs[:]...)
}

// observed returns what is known of a Run, as a decision would be made on it now.
func (r *reconciler) observed(name types.NamespacedName) (lifecycle.Observed, error) {
	objects, err := r.cached(name)
	if err != nil {
		return lifecycle.Observed{}, err
	}
	return r.order.See(objects)
}

// ofRun returns the objects of a kind that a cache holds of a Run.
func ofRun[T any](watch cache.SharedIndexInformer, name types.NamespacedName) ([]*T, error) {
	objects, err := watch.GetIndexer().ByIndex(byRun, name.String())
	out := make([]*T, 0, len(objects))
	for _, o := range objects {
		out = append(out, o.(any).(*T))
	}
	return out, err
}
