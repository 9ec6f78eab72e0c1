package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// reconcileRun brings one Run a decision further. It returns when to look again without an event; 0 for never.
func (c *Controllers) reconcileRun(ctx context.Context, name types.NamespacedName) (time.Duration, error) {
	observed, err := c.observe(ctx, name)
	if err != nil {
		return 0, err
	}
	decision := lifecycle.Decide(observed)
	if err := c.tellFirst(ctx, observed, &decision); err != nil {
		return 0, err
	}
	if err := c.deletePods(ctx, decision.Delete); err != nil {
		return 0, err
	}
	if err := c.numberEpochs(ctx, observed.Run, decision.Replace, nil); err != nil {
		return 0, err
	}
	problem := c.createPods(ctx, decision.Replace)
	if passes(problem) {
		return 0, problem // the Leases of lost ranks still tell of the loss
	}
	closed, err := c.closeLeases(ctx, name, observed.Pods, decision.Close)
	if err != nil {
		return 0, err
	}
	c.gone.keep(name, observed.Leases)
	if err := c.numberEpochs(ctx, observed.Run, decision.Create, closed); err != nil {
		return 0, err
	}
	if problem == nil {
		problem = c.createAll(ctx, decision)
	}
	c.note(name, observed.Run, problem)
	if decision.Retry > 0 {
		c.retries.AddAfter(name, decision.Retry)
	}
	if behind := c.behind(name, observed.Run); decision.Status != nil && !behind {
		if err := c.tell(ctx, observed, decision.Status); err != nil {
			return 0, err
		}
	}
	return decision.After, problem
}

// countAdmission counts how long a Run that starts now has waited, and how it came to start.
func (c *Controllers) countAdmission(o lifecycle.Observed, status *rqv1.RunStatus) {
	if o.Run.Status.Phase == rqv1.RunRunning || status.Phase != rqv1.RunRunning {
		return
	}
	since := o.Run.CreationTimestamp.Time
	if waits := meta.FindStatusCondition(o.Run.Status.Conditions, rqv1.ConditionStarted); waits != nil && waits.LastTransitionTime.After(since) {
		since = waits.LastTransitionTime.Time
	}
	outcome := "immediate"
	switch r := o.Waits(); {
	case r != nil && r.Status.ActivatedAt != nil:
		outcome = "activated"
	case r != nil:
		outcome = "reserved"
	}
	metrics.AdmissionSeconds.WithLabelValues(outcome).Observe(c.clock.Since(since).Seconds())
}

// countWidth counts a change of the width of a Run that runs, and growth that was given up.
func countWidth(was, is *rqv1.RunWidth) {
	switch {
	case was == nil || is == nil || was.Granted == 0 || is.Granted == 0:
	case is.Granted > was.Granted:
		metrics.WidthChanges.WithLabelValues("grew").Inc()
	case is.Granted < was.Granted:
		metrics.WidthChanges.WithLabelValues("shrunk").Inc()
	case was.Growing > 0 && is.Growing == 0:
		metrics.WidthChanges.WithLabelValues("givenUp").Inc()
	}
}

// passes reports whether a failure to make pods passes by itself: the API server, or this process, was not up to it. What it holds
// against the pods stays.
func passes(problem error) bool {
	taken := nameTaken{}
	return problem != nil && !errors.As(problem, &taken) && !apierrors.IsForbidden(first(problem)) && !apierrors.IsInvalid(first(problem))
}

// note remembers what the API server holds against a Run's pods, so that the next decision tells it.
func (c *Controllers) note(name types.NamespacedName, run *rqv1.Run, problem error) {
	taken := nameTaken{}
	switch {
	case run == nil || problem == nil:
		c.problems.Delete(name)
	case errors.As(problem, &taken):
		c.problems.Store(name, taken.Error())
	case !passes(problem):
		c.problems.Store(name, "the API server does not take the Run's pods: "+first(problem).Error())
	}
}

// observe gathers what the caches hold of a Run and what the book knows of it, and brings its Reservations to where they should
// stand.
func (c *Controllers) observe(ctx context.Context, name types.NamespacedName) (lifecycle.Observed, error) {
	o := lifecycle.Observed{Objects: book.Objects{Name: name}, Rules: lifecycle.RulesOf(c.args)}
	if run, ok, err := c.watches.runs.GetStore().GetByKey(name.String()); err != nil {
		return o, err
	} else if ok {
		o.Run = run.(*rqv1.Run)
	}
	if problem, ok := c.problems.Load(name); ok && o.Run != nil {
		o.Problem = problem.(string)
	}
	var errs [3]error
	o.Pods, errs[0] = ofRun[corev1.Pod](c.watches.pods, name)
	o.Leases, errs[1] = ofRun[rqv1.Lease](c.watches.leases, name)
	o.Reservations, errs[2] = ofRun[rqv1.Reservation](c.watches.reservations, name)
	if err := errors.Join(errs[:]...); err != nil {
		return o, err
	}
	for {
		known := false
		o.Now = c.clock.Now()
		if o.Look, known = c.book.Look(o.Objects, o.Now); !known {
			return o, fmt.Errorf("the book has not seen Run %s yet", name)
		}
		write := lifecycle.Reserve(o)
		if write == nil {
			return o, nil
		}
		written, err := c.writeReservation(ctx, write)
		if err != nil {
			return o, err
		}
		o.Reservations = slices.DeleteFunc(o.Reservations, func(r *rqv1.Reservation) bool { return r.Name == written.Name })
		o.Reservations = append(o.Reservations, written)
	}
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

// inParallel runs n API writes, several at a time, and returns their errors together.
func inParallel(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(writers)
	errs := make([]error, n)
	for i := range n {
		group.Go(func() error { errs[i] = do(i); return nil })
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

func (c *Controllers) deletePods(ctx context.Context, deletions []lifecycle.Deletion) error {
	deletions, err := c.ofGoneRuns(ctx, deletions)
	if err != nil {
		return err
	}
	return inParallel(len(deletions), func(i int) error {
		d := deletions[i]
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(d.Pod.UID)), GracePeriodSeconds: d.GraceSeconds}
		if d.If != lifecycle.NoEvidence && d.If != lifecycle.RunGone { // which has been asked for
			there, err := c.evidence(ctx, d)
			if err != nil || !there {
				return err
			}
		}
		if d.If == lifecycle.NodeLost {
			options.GracePeriodSeconds = new(int64) // nobody is there to confirm the end
		}
		if d.Notice != nil {
			if err := c.giveNotice(ctx, d.Pod, d.Notice); err != nil {
				return err
			}
			options.GracePeriodSeconds = &d.Notice.GraceSeconds
		}
		err := c.kube.CoreV1().Pods(d.Pod.Namespace).Delete(ctx, d.Pod.Name, options)
		return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
	})
}

// evidence asks the API server itself whether what a deletion is for is so: a cache that lacks an object proves nothing.
func (c *Controllers) evidence(ctx context.Context, d lifecycle.Deletion) (bool, error) {
	switch d.If {
	case lifecycle.NodeLost:
		node, err := c.kube.CoreV1().Nodes().Get(ctx, d.Node, metav1.GetOptions{})
		if err != nil {
			return apierrors.IsNotFound(err), ignore(err, apierrors.IsNotFound)
		}
		_, lost := nodeloss.Recorded(node)
		return lost, nil
	case lifecycle.Unpaid:
		lease := &rqv1.Lease{}
		err := c.client.Get(ctx, types.NamespacedName{Namespace: d.Pod.Namespace, Name: rank.LeaseName(d.Pod.Name, d.Pod.UID)}, lease)
		return apierrors.IsNotFound(err) || err == nil && lease.Status.Closed, ignore(err, apierrors.IsNotFound)
	}
	return false, fmt.Errorf("no such evidence: %s", d.If)
}

// closeLeases closes Leases whose pods have ended, and returns those that were open until now. Where the cache lacks a pod
// whose end was not told, the API server is asked first.
func (c *Controllers) closeLeases(ctx context.Context, run types.NamespacedName, cached []*corev1.Pod, closings []lifecycle.Closing) ([]*rqv1.Lease, error) {
	if len(closings) == 0 {
		return nil, nil
	}
	known := map[types.UID]bool{}
	for _, pod := range cached {
		known[pod.UID] = true
	}
	var alive map[types.UID]bool
	for _, closing := range closings {
		if pod := closing.Lease.PodUID(); !known[pod] && !c.gone.has(run, pod) {
			var err error
			if alive, err = c.podsAlive(ctx, run); err != nil {
				return nil, err
			}
			break
		}
	}
	closed := make([]*rqv1.Lease, len(closings))
	err := inParallel(len(closings), func(i int) (err error) {
		if alive[closings[i].Lease.PodUID()] {
			return nil // the cache is behind; the pod's own event looks again
		}
		closed[i], err = c.closeLease(ctx, closings[i])
		return err
	})
	return slices.DeleteFunc(closed, func(l *rqv1.Lease) bool { return l == nil }), err
}

// podsAlive returns the UIDs of a Run's pods that hold GPUs, as the API server has them.
func (c *Controllers) podsAlive(ctx context.Context, run types.NamespacedName) (map[types.UID]bool, error) {
	pods, err := c.kube.CoreV1().Pods(run.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{rqv1.LabelRun: run.Name}.String(),
	})
	if err != nil {
		return nil, fmt.Errorf("listing pods of Run %s: %w", run, err)
	}
	alive := map[types.UID]bool{}
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			alive[pods.Items[i].UID] = true
		}
	}
	return alive, nil
}

// closeLease closes a Lease, and returns it unless it was closed before or has changed.
func (c *Controllers) closeLease(ctx context.Context, closing lifecycle.Closing) (*rqv1.Lease, error) {
	lease := closing.Lease.DeepCopy()
	ended := metav1.NewMicroTime(c.clock.Now())
	if !closing.Ended.IsZero() {
		ended = metav1.NewMicroTime(closing.Ended)
	}
	if ended.Before(&lease.Spec.Start) {
		ended = lease.Spec.Start // a clock that was set back makes no negative time
	}
	lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: closing.Reason}
	if err := c.client.Status().Update(ctx, lease); err != nil {
		return nil, ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
	}
	metrics.LeasesClosed.WithLabelValues(string(closing.Reason)).Inc()
	c.ledger.settled.lost(c.book.SetLease(lease))
	return lease, nil
}

// createAll creates what a Run lacks. Creating it again is harmless: names are the ranks'.
func (c *Controllers) createAll(ctx context.Context, d lifecycle.Decision) error {
	if d.Service != nil {
		services := c.kube.CoreV1().Services(d.Service.Namespace)
		_, err := services.Create(ctx, d.Service, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = belongs("Service", d.Service, func() (metav1.Object, error) { return services.Get(ctx, d.Service.Name, metav1.GetOptions{}) })
		}
		if err != nil {
			return err
		}
	}
	return c.createPods(ctx, d.Create)
}

func (c *Controllers) createPods(ctx context.Context, wanted []*corev1.Pod) error {
	var failed atomic.Bool
	return inParallel(len(wanted), func(i int) error {
		if failed.Load() {
			return nil // what is held against one pod of a gang is held against all
		}
		pods := c.kube.CoreV1().Pods(wanted[i].Namespace)
		_, err := pods.Create(ctx, wanted[i], metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = belongs("Pod", wanted[i], func() (metav1.Object, error) { return pods.Get(ctx, wanted[i].Name, metav1.GetOptions{}) })
		}
		if err != nil {
			failed.Store(true)
		}
		return err
	})
}

// first returns the first of errors that were joined: a gang's pods fail alike.
func first(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		return joined.Unwrap()[0]
	}
	return err
}

func (c *Controllers) writeStatus(ctx context.Context, run *rqv1.Run, status *rqv1.RunStatus) error {
	next := run.DeepCopy()
	next.Status = *status
	if err := c.client.Status().Update(ctx, next); err != nil {
		return ignore(err, apierrors.IsNotFound)
	}
	c.written.Store(types.NamespacedName{Namespace: run.Namespace, Name: run.Name}, next.ResourceVersion)
	if run.Status.Phase != status.Phase {
		metrics.Phases.WithLabelValues(string(status.Phase)).Inc()
	}
	if refused := meta.FindStatusCondition(status.Conditions, rqv1.ConditionStarted); status.Phase == rqv1.RunPending &&
		refused != nil && run.Status.Message != status.Message {
		metrics.Refusals.WithLabelValues(refused.Reason).Inc()
	}
	c.tellConditions(run, status)
	if run.Status.Phase != status.Phase || run.Status.Message != status.Message {
		kind := corev1.EventTypeNormal
		if status.Phase == rqv1.RunFailed {
			kind = corev1.EventTypeWarning
		}
		c.events.Eventf(reference(run), nil, kind, string(status.Phase), "Reconcile", "%s", status.Message)
	}
	return nil
}

// behind reports whether what is cached of a Run is older than the status that was written last: the event of that write has the
// Run looked at again, and a write before it would be refused.
func (c *Controllers) behind(name types.NamespacedName, run *rqv1.Run) bool {
	written, ok := c.written.Load(name)
	if ok && run != nil {
		order, err := resourceversion.CompareResourceVersion(run.ResourceVersion, written.(string))
		if err == nil && order < 0 {
			return true
		}
	}
	c.written.Delete(name)
	return false
}

// reference returns a Run that events can point at: objects from a watch carry no kind.
func reference(run *rqv1.Run) *rqv1.Run {
	run = run.DeepCopy()
	run.SetGroupVersionKind(rqv1.GroupVersion.WithKind("Run"))
	return run
}

// ignore returns nil for errors of the given kinds.
func ignore(err error, kinds ...func(error) bool) error {
	for _, is := range kinds {
		if is(err) {
			return nil
		}
	}
	return err
}
