package controllers

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// statusWriter writes the statuses of Runs, makes events of what they say and counts it.
type statusWriter struct {
	client  client.Client
	events  events.EventRecorder
	clock   clock.PassiveClock
	written *sync.Map // the writes that have not been seen yet, the last of each Run, by its name
}

// write is of a Run's status: the version of the Run that it has made.
type write struct {
	run     types.UID
	version string
}

// WriteStatus writes a Run's status.
func (s statusWriter) WriteStatus(ctx context.Context, o *lifecycle.Observed, status *rqv1.RunStatus) error {
	next := o.Run.DeepCopy()
	next.Status = *status
	if err := s.client.Status().Update(ctx, next); err != nil {
		return ignore(err, apierrors.IsNotFound)
	}
	s.written.Store(client.ObjectKeyFromObject(next), write{next.UID, next.ResourceVersion})
	s.tellDeaths(o.Run, status)
	s.tell(o.Run, status)
	s.count(o, status)
	return nil
}

// behind reports whether a Run, as the cache has it, lacks the status that was written last: nothing is decided on it
// before the event of that write. What the cache has had once, or whose Run is gone, is not waited for.
func (s statusWriter) behind(name types.NamespacedName, run *rqv1.Run) bool {
	last, unseen := s.written.Load(name)
	if unseen && run != nil && run.UID == last.(write).run {
		order, err := resourceversion.CompareResourceVersion(run.ResourceVersion, last.(write).version)
		if err == nil && order < 0 {
			return true
		}
	}
	s.written.Delete(name)
	return false
}

// tell makes events of what is news about a Run.
func (s statusWriter) tell(run *rqv1.Run, status *rqv1.RunStatus) {
	for _, f := range reconcile.NewsOf(run, status) {
		s.events.Eventf(reference(run), nil, f.Type, f.Reason, f.Action, "%s", f.Note)
	}
}

// tellDeaths tells of ranks that have failed, and counts them.
func (s statusWriter) tellDeaths(run *rqv1.Run, status *rqv1.RunStatus) {
	for i := range status.Deaths {
		d := &status.Deaths[i]
		if slices.ContainsFunc(run.Status.Deaths, func(known rqv1.RunDeath) bool {
			return known.Pod == d.Pod && known.Restarts == d.Restarts
		}) {
			continue
		}
		metrics.RankEnds.WithLabelValues(string(d.Cause)).Inc()
		s.events.Eventf(reference(run), nil, corev1.EventTypeWarning, "RankEnded", "Reconcile", "%s", ending.Told(d))
	}
}

// unsaid tells that pods go and that the Run's status cannot say so.
func (s statusWriter) unsaid(ctx context.Context, run *rqv1.Run, why error) {
	logger := klog.FromContext(ctx)
	logger.Error(why, "The API server refuses a Run's status; its pods go all the same", "run", klog.KObj(run))
	s.events.Eventf(reference(run), nil, corev1.EventTypeWarning, "StatusRefused", "Reconcile",
		"the Run's pods are deleted, but its status could not be written: %s", why.Error())
}

// unrepaid tells that a Run's pods do not exchange payers, and why: a sponsor goes on paying for what is not the last.
func (s statusWriter) unrepaid(ctx context.Context, run *rqv1.Run, why error) {
	klog.FromContext(ctx).Error(why, "The API server refuses that two pods exchange payers", "run", klog.KObj(run))
	s.events.Eventf(reference(run), nil, corev1.EventTypeWarning, "ExchangeRefused", "Reconcile",
		"a sponsor goes on paying for a pod that is not the last, since the Lease of its next payer is refused: %s",
		why.Error())
}

// count counts what a status changes.
func (s statusWriter) count(o *lifecycle.Observed, status *rqv1.RunStatus) {
	was := &o.Run.Status
	if was.Phase != status.Phase {
		metrics.Phases.WithLabelValues(string(status.Phase)).Inc()
	}
	refused := meta.FindStatusCondition(status.Conditions, rqv1.ConditionStarted)
	if status.Phase == rqv1.RunPending && refused != nil && was.Message != status.Message {
		metrics.Refusals.WithLabelValues(refused.Reason).Inc()
	}
	if was.Phase != rqv1.RunRunning && status.Phase == rqv1.RunRunning {
		s.countAdmission(o)
	}
	countWidth(was.Width, status.Width)
}

// countAdmission counts how long a Run that starts now has waited, and how it came to start.
func (s statusWriter) countAdmission(o *lifecycle.Observed) {
	since := o.Run.CreationTimestamp.Time
	for _, kind := range [...]string{rqv1.ConditionStarted, rqv1.ConditionSuspended} { // it was sent back, or resumed
		waits := meta.FindStatusCondition(o.Run.Status.Conditions, kind)
		if waits != nil && waits.LastTransitionTime.After(since) {
			since = waits.LastTransitionTime.Time
		}
	}
	outcome := "immediate"
	switch r := o.Waits(); {
	case r != nil && r.Status.ActivatedAt != nil:
		outcome = "activated"
	case r != nil:
		outcome = "reserved"
	}
	metrics.AdmissionSeconds.WithLabelValues(outcome).Observe(s.clock.Since(since).Seconds())
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
