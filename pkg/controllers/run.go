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
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// reconciler has Runs reconciled that have changed, several at a time.
type reconciler struct {
	watches *watches
	book    *book.Book
	order   *reconcile.Runs
	tell    statusWriter
	gone    endedPods
	guards  *guards
	lanes   *lanes
	ended   *expiries
	retries workqueue.TypedDelayingInterface[types.NamespacedName]
	decides atomic.Bool
	groups  *groups
}

// newReconciler returns what reconciles the Runs that some watches see. lost is told of Budgets whose records have
// changed.
func newReconciler(o *Options, w *watches, lost func(budgets []string)) *reconciler {
	r := &reconciler{watches: w, book: o.Book,
		tell:    statusWriter{client: o.Client, events: o.events, clock: o.Clock, written: &sync.Map{}},
		guards:  &guards{kube: o.Kube, seen: w.guards, written: &sync.Map{}},
		lanes:   newLanes(),
		retries: workqueue.NewTypedDelayingQueue[types.NamespacedName](),
	}
	w.unseen = &unseen{clock: o.Clock, later: func(run types.NamespacedName, after time.Duration) {
		r.lanes.add(run, lane.Begin, after)
	}}
	r.groups = newGroups(o, w, r.changed)
	r.ended = newExpiries(o.Args.FinishedRunTTL.Duration, o.doubt,
		func(run types.NamespacedName) { r.changed(run, lane.Expire) })
	carries := newAPI(o, &r.gone, w.unseen, r.guards, r.tell, lost, o.doubt.doubts)
	r.order = reconcile.New(o.Book, carries, lifecycle.RulesOf(o.Args), o.Clock.Now)
	return r
}

// changed has a Run looked at soon, for some work. A process that does not decide yet keeps no list: it stands by for
// as long as another leads, while Runs come and go.
func (r *reconciler) changed(run types.NamespacedName, work lane.Work) {
	if r.decides.Load() {
		r.lanes.add(run, work, debounce)
	}
}

// begin has every Run looked at of which anything may be left to do: this process decides from now on.
func (r *reconciler) begin() {
	r.decides.Store(true)
	r.unfinished(r.changed)
}

// unfinished tells of all Runs of which anything may be left to do, also those of which only pods, Leases or
// Reservations are left, and what.
func (r *reconciler) unfinished(tell func(run types.NamespacedName, work lane.Work)) {
	done := map[types.NamespacedName]types.UID{}
	for _, run := range cached[rqv1.Run](r.watches.runs) {
		if name := client.ObjectKeyFromObject(run); lifecycle.Done(run) {
			done[name] = run.UID
		} else {
			tell(name, lane.OfRun(run, false))
		}
	}
	for _, pod := range cached[corev1.Pod](r.watches.pods) {
		of, ours := rank.RunOf(pod)
		if name := runOfPod(pod); !ours || done[name] != of || !rank.Ended(pod) {
			tell(name, lane.OfPod(pod, false))
		}
	}
	for _, lease := range cached[rqv1.Lease](r.watches.leases) {
		tell(runOfLease(lease), lane.End) // its pod may have ended
	}
	for _, reservation := range cached[rqv1.Reservation](r.watches.reservations) {
		if !reservation.Ended() {
			tell(runOfReservation(reservation), lane.OfReservation(reservation, false))
		}
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

// workIn reconciles one Run of a lane after the other until the lanes are shut down.
func (r *reconciler) workIn(ctx context.Context, of lane.Lane) {
	for {
		run, work, shutdown := r.lanes.next(of)
		if shutdown {
			return
		}
		after, err := r.reconcile(ctx, run)
		switch {
		case err != nil:
			klog.FromContext(ctx).V(2).Info("Retrying a Run", "run", run, "err", err)
			r.lanes.again(run, work)
		default:
			r.lanes.forget(run)
		}
		if after > 0 {
			r.lanes.add(run, lane.End, after) // its time is over then, or that of a start that has not come about
		}
		r.lanes.done(run, work)
	}
}

// errBehind says that a Run's own event is to be seen first. It looks again, and may do so in another lane.
var errBehind = errors.New("the status that was written last has not been seen yet")

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
	r.lanes.shutDown()
	r.retries.ShutDown()
}

// reconcile brings one Run a decision further. It returns when to look again without an event; 0 for never.
func (r *reconciler) reconcile(ctx context.Context, name types.NamespacedName) (time.Duration, error) {
	defer r.ended.looked(name)
	objects, err := r.cached(name)
	if err != nil {
		return 0, err
	}
	if r.tell.behind(name, objects.Run) {
		return 0, errBehind
	}
	outcome, err := r.order.Reconcile(ctx, objects, nil)
	r.gone.keep(name, objects.Leases)
	if outcome.Retry > 0 {
		r.retries.AddAfter(name, outcome.Retry)
	}
	if outcome.Unsaid != nil {
		r.tell.unsaid(ctx, objects.Run, outcome.Unsaid)
	}
	if outcome.Unrepaid != nil && objects.Run != nil {
		r.tell.unrepaid(ctx, objects.Run, outcome.Unrepaid)
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
	if o.Run != nil && o.Run.Spec.Theirs() {
		o.Offers, o.GroupEnd = r.groups.offers(o.Run) // before its pods: whose rank it has seen is among those
	}
	var errs [4]error
	o.Pods, errs[0] = ofRun[corev1.Pod](r.watches.pods, name)
	o.Leases, errs[1] = ofRun[rqv1.Lease](r.watches.leases, name)
	o.Reservations, errs[2] = ofRun[rqv1.Reservation](r.watches.reservations, name)
	o.Guards, errs[3] = r.guards.of(name)
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
