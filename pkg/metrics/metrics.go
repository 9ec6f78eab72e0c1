// Package metrics holds what jobtree counts in production. The scheduler serves it on /metrics with kube-scheduler's own.
package metrics

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "jobtree"

var (
	// Refusals counts how often a Run was told that it does not start, by reason (R29).
	Refusals = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "run_refusals_total", StabilityLevel: metrics.ALPHA,
		Help: "Times that a Run was told why it does not start, by reason.",
	}, []string{"reason"})
	// Phases counts the Runs that reached a phase.
	Phases = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "run_phase_total", StabilityLevel: metrics.ALPHA,
		Help: "Times that a Run came into a phase, by phase.",
	}, []string{"phase"})
	// LeasesOpened counts Leases written.
	LeasesOpened = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "leases_opened_total", StabilityLevel: metrics.ALPHA,
		Help: "GPU leases opened.",
	})
	// LeasesClosed counts Leases closed, by closure reason.
	LeasesClosed = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "leases_closed_total", StabilityLevel: metrics.ALPHA,
		Help: "GPU leases closed, by closure reason.",
	}, []string{"reason"})
	// PlanSeconds is how long it takes to place a pod, of which only a gang's leader plans.
	PlanSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "gang_plan_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time to place a pod of a Run; a gang's first pod plans the whole gang.",
		Buckets: metrics.ExponentialBuckets(0.00001, 4, 9),
	})
)

// Register adds the metrics to the process's registry. It may be called again.
func Register() {
	for _, m := range []metrics.Registerable{Refusals, Phases, LeasesOpened, LeasesClosed, PlanSeconds} {
		_ = legacyregistry.Register(m) // registered already: the process has more than one profile
	}
}
