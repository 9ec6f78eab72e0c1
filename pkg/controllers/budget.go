package controllers

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

const (
	// budgetPeriod is how often Budgets are looked at, and budgetWrites how many of them are written at most each time: a
	// bound on writes, whatever happens in between.
	budgetPeriod = time.Second
	budgetWrites = 20
	// hoursPeriod is how old the GPU-hours of a status may grow when nothing else changes. In between, readers add hourly.
	hoursPeriod = time.Minute
)

// budgetReporter tells in the status of Budgets what they pay for.
type budgetReporter struct {
	book    *book.Book
	client  client.Client
	events  events.EventRecorder
	clock   clock.Clock
	watched cache.SharedInformer
	failed  map[string]time.Time // when a status could not be written last, by Budget
}

// watch keeps the overdraft and the status of Budgets current, until the context ends.
func (b *budgetReporter) watch(ctx context.Context) {
	every(ctx, b.clock, budgetPeriod, func() { b.report(ctx) })
}

// report writes what is worth a write, the oldest first.
func (b *budgetReporter) report(ctx context.Context) {
	now := b.clock.Now()
	b.book.Budgets.RefreshBudgets(now)
	written := 0
	budgets := b.oldestFirst()
	gaugeBudgets(budgets)
	for _, of := range budgets {
		if written == budgetWrites {
			break // the rest is older next time, and comes first
		}
		wrote, err := b.write(ctx, of, now)
		delete(b.failed, of.Name)
		if err != nil {
			b.failed[of.Name] = now
			klog.FromContext(ctx).V(2).Info("Retrying to write a Budget's status", "budget", of.Name, "err", err)
		}
		if wrote {
			written++
		}
	}
}

// oldestFirst returns the Budgets, those whose status is oldest first. What could not be written counts as if it were:
// it is to keep nobody else's from being written.
func (b *budgetReporter) oldestFirst() []*rqv1.Budget {
	var out []*rqv1.Budget
	failed := map[string]time.Time{} // of those that are left
	for _, o := range b.watched.GetStore().List() {
		of := o.(*rqv1.Budget)
		out = append(out, of)
		if at, did := b.failed[of.Name]; did {
			failed[of.Name] = at
		}
	}
	b.failed = failed
	age := func(of *rqv1.Budget) time.Time {
		if observed := of.Status.ObservedAt; observed != nil && observed.After(failed[of.Name]) {
			return observed.Time
		}
		return failed[of.Name]
	}
	slices.SortFunc(out, func(x, y *rqv1.Budget) int {
		if older := age(x).Compare(age(y)); older != 0 {
			return older
		}
		return strings.Compare(x.Name, y.Name)
	})
	return out
}

// write writes the status of a Budget if it is worth a write, and reports whether it did.
func (b *budgetReporter) write(ctx context.Context, of *rqv1.Budget, now time.Time) (bool, error) {
	report, known := b.book.Budgets.BudgetReport(of, now)
	if !known {
		return false, nil // what is cached and what the book knows change one after the other
	}
	next := of.DeepCopy()
	next.Status = report.Status
	next.Status.Conditions = slices.Clone(of.Status.Conditions)
	next.Status.Conditions = reconcile.BudgetConditions(next, report, now)
	if !worthWriting(&of.Status, &next.Status) {
		return false, nil
	}
	err := b.client.Status().Update(ctx, next)
	if err == nil {
		b.tell(of, next)
	}
	return true, ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
}

// worthWriting reports whether a status says something new: anything but GPU-hours, or those when they have grown old.
func worthWriting(was, next *rqv1.BudgetStatus) bool {
	if was.ObservedAt == nil {
		return true
	}
	if next.ObservedAt.Sub(was.ObservedAt.Time) >= hoursPeriod &&
		!equality.Semantic.DeepEqual(hoursIn(was), hoursIn(next)) {
		return true
	}
	return !equality.Semantic.DeepEqual(withoutHours(was), withoutHours(next))
}

func hoursIn(s *rqv1.BudgetStatus) []rqv1.GPUHours {
	var out []rqv1.GPUHours
	for i := range s.Envelopes {
		if h := s.Envelopes[i].GPUHours; h != nil {
			out = append(out, *h)
		}
	}
	return out
}

// withoutHours returns a status without what changes by time alone.
func withoutHours(s *rqv1.BudgetStatus) *rqv1.BudgetStatus {
	s = s.DeepCopy()
	s.ObservedAt = nil
	for i := range s.Envelopes {
		if h := s.Envelopes[i].GPUHours; h != nil {
			s.Envelopes[i].GPUHours = &rqv1.GPUHours{Hourly: h.Hourly}
		}
	}
	for i := range s.AggregateCaps {
		s.AggregateCaps[i].GPUHours = nil
	}
	return s
}

// tell makes an event of every condition of a Budget that has changed.
func (b *budgetReporter) tell(was, is *rqv1.Budget) {
	for i := range is.Status.Conditions {
		condition := &is.Status.Conditions[i]
		old := meta.FindStatusCondition(was.Status.Conditions, condition.Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		kind := corev1.EventTypeNormal
		if condition.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		about := is.DeepCopy()
		about.SetGroupVersionKind(rqv1.GroupVersion.WithKind("Budget"))
		b.events.Eventf(about, nil, kind, condition.Reason, "Account", "%s", condition.Message)
	}
}
