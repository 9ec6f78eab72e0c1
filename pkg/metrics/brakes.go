package metrics

import "k8s.io/component-base/metrics"

// CutsPaused, RunsCutLastHour and CalledOff tell of the brakes on cuts (R36).
var (
	CutsPaused = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "cuts_paused", StabilityLevel: metrics.ALPHA,
		Help: "1 while activations of Reservations are paused, else 0.",
	})
	RunsCutLastHour = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "runs_cut_last_hour", StabilityLevel: metrics.ALPHA,
		Help: "Runs that activations of Reservations have ended or shrunk within the last hour, of which cutsPerHour " +
			"allows so many.",
	})
	CalledOff = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "activations_called_off_total", StabilityLevel: metrics.ALPHA,
		Help: "Reservations that somebody has called off.",
	})
)
