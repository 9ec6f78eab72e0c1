package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// An audit looks at everything auditPeriod apart, or more often where gangs have less time than that four times over,
// and what two looks in a row have is a finding, the first of them a period after the process begins to lead. It reads
// what is cached: closed Leases are not, so that GPU-hours are for `kubectl runs audit` to check. Looks take a
// hundredth of the time at most. Once the API server has not answered, its watches begin again one by one, within a
// minute or so; until auditRest is over a look compares what is old with what is new.
const (
	auditPeriod = 30 * time.Second
	auditLeast  = 10 * time.Second
	auditShare  = 100
	auditRest   = 90 * time.Second
)

// auditor checks what always holds, from what the API server has told, apart from the book.
type auditor struct {
	rules   audit.Rules
	period  time.Duration
	clock   clock.Clock
	leads   func() bool
	contact *contact
	watches *watches
	// fleet, everyPod and spaces are the scheduler's own informers of nodes, pods and namespaces.
	fleet, everyPod, spaces cache.SharedInformer

	// begun says that a process has led since the look before.
	begun  bool
	before *audit.Look
	told   map[string]bool
}

// newAuditor returns one that has seen nothing.
func newAuditor(o *Options, w *watches, c *contact) *auditor {
	return &auditor{rules: audit.RulesOf(o.Args),
		period: min(auditPeriod, max(auditLeast, o.Args.GangDeadline.Duration/4)),
		clock:  o.Clock, leads: o.Holds, contact: c, watches: w,
		fleet: o.Shared.Core().V1().Nodes().Informer(), everyPod: o.Shared.Core().V1().Pods().Informer(),
		spaces: o.Shared.Core().V1().Namespaces().Informer()}
}

// watch looks again and again, until the context ends.
func (a *auditor) watch(ctx context.Context) {
	for took := a.look(ctx); pause(ctx, a.clock, max(a.period, auditShare*took)); took = a.look(ctx) {
	}
}

// look looks once, tells what stands since the look before, and returns how long that took.
func (a *auditor) look(ctx context.Context) time.Duration {
	began := a.clock.Now()
	switch {
	case !a.leads():
		a.before, a.begun = nil, false // what it has to say is not written
		countViolations(nil)
		return 0
	case !a.begun:
		a.begun = true // it puts right first what another process left half done
		countViolations(nil)
		return 0
	case !a.contact.settled(began, auditRest):
		a.before = nil // what stood before is neither over nor there still
		return 0
	}
	metrics.AuditLook.Set(float64(began.Unix()))
	after := a.rules.Look(a.world(began))
	if a.before != nil {
		findings := audit.Standing(a.before, after)
		countViolations(findings)
		a.tell(klog.FromContext(ctx), findings)
	}
	a.before = after
	return a.clock.Since(began)
}

// countViolations has the metric say how many violations stand, 0 included.
func countViolations(findings []audit.Finding) {
	for invariant, n := range audit.Count(findings) {
		metrics.InvariantViolations.WithLabelValues(string(invariant)).Set(float64(n))
		metrics.InvariantViolationsFound.WithLabelValues(string(invariant)).Add(0)
	}
}

// tell logs each violation once, and counts it, and says when it stands no more.
func (a *auditor) tell(logger klog.Logger, findings []audit.Finding) {
	stands := map[string]bool{}
	for i := range findings {
		f := &findings[i]
		if f.Level != audit.Violation {
			continue
		}
		key := f.Key()
		stands[key] = true
		if a.told[key] {
			continue
		}
		metrics.InvariantViolationsFound.WithLabelValues(string(f.Invariant)).Inc()
		logger.Error(fmt.Errorf("invariant %s is violated: %s", f.Invariant, f.Message), "The audit found a problem",
			"object", f.Objects[0].String(), "remedy", f.Remedy)
	}
	for key := range a.told {
		if !stands[key] {
			logger.Info("A problem that the audit found is gone", "finding", key)
		}
	}
	a.told = stands
}

// world is what the API server has told. Pods of Runs are watched in every phase, others as the scheduler does,
// without those that have ended.
func (a *auditor) world(now time.Time) *audit.World {
	w := &audit.World{At: now, Nodes: cached[corev1.Node](a.fleet), Pods: cached[corev1.Pod](a.watches.pods),
		Runs: cached[rqv1.Run](a.watches.runs), Budgets: cached[rqv1.Budget](a.watches.budgets),
		Reservations: cached[rqv1.Reservation](a.watches.reservations), Leases: cached[rqv1.Lease](a.watches.leases)}
	if a.spaces.HasSynced() {
		w.Going = map[string]bool{}
	}
	for _, space := range cached[corev1.Namespace](a.spaces) {
		if space.DeletionTimestamp != nil && w.Going != nil {
			w.Going[space.Name] = true
		}
	}
	for _, pod := range cached[corev1.Pod](a.everyPod) {
		if _, ours := pod.Labels[rqv1.LabelRun]; !ours {
			w.Pods = append(w.Pods, pod)
		}
	}
	return w
}

// cached returns the objects that an informer has.
func cached[T any](informer cache.SharedInformer) []*T {
	all := informer.GetStore().List()
	out := make([]*T, 0, len(all))
	for _, o := range all {
		if object, ok := o.(*T); ok {
			out = append(out, object)
		}
	}
	return out
}
