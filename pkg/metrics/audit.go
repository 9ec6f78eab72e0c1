package metrics

import "k8s.io/component-base/metrics"

// InvariantViolations is how many violations of each invariant stand by the last audit, and InvariantViolationsFound
// how many were ever found.
var (
	InvariantViolations = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "invariant_violations", StabilityLevel: metrics.ALPHA,
		Help: "Violations of what always holds that the last audit found, by invariant; see kubectl runs audit.",
	}, []string{"invariant"})
	InvariantViolationsFound = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "invariant_violations_found_total", StabilityLevel: metrics.ALPHA,
		Help: "Violations of what always holds that audits found, each counted when it was found first, by invariant.",
	}, []string{"invariant"})
)
