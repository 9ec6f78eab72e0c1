package metrics

import "k8s.io/component-base/metrics"

// AuditLook is when the last audit looked, InvariantViolations how many violations of each invariant stand by it, and
// InvariantViolationsFound how many were ever found.
var (
	AuditLook = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "audit_last_look_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "When the process that leads last checked the invariants, in seconds since 1970.",
	})
	InvariantViolations = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "invariant_violations", StabilityLevel: metrics.ALPHA,
		Help: "Violations of invariants that the last audit found, by invariant; see kubectl runs audit.",
	}, []string{"invariant"})
	InvariantViolationsFound = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "invariant_violations_found_total", StabilityLevel: metrics.ALPHA,
		Help: "Violations of invariants that audits found, each counted when it was found first, by invariant.",
	}, []string{"invariant"})
)
