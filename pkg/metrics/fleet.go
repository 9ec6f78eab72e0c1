package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
)

// What there is, who may use it and what waits, as it is now. Only the scheduler that leads tells these, by Tell.
var (
	// FleetGPUs and FleetNodes are by fast-fabric domain, GPU type and state. Promised GPUs may be free or not.
	FleetGPUs = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "fleet_gpus", StabilityLevel: metrics.ALPHA,
		Help: "GPUs by domain, GPU type and state: all, free, promised. Free ones are on nodes in service; promised ones, " +
			"free or not, are intended for Runs that wait and have a date.",
	}, []string{"domain", "gpu_type", "state"})
	FleetNodes = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "fleet_nodes", StabilityLevel: metrics.ALPHA,
		Help: "Nodes with GPUs by domain, GPU type and state: all, out_of_service.",
	}, []string{"domain", "gpu_type", "state"})
	// BudgetGPUs and BudgetGPUHours are by Budget and envelope, as the status of Budgets has them.
	BudgetGPUs = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "budget_gpus", StabilityLevel: metrics.ALPHA,
		Help: "GPUs of an envelope by use: concurrency, the most that it pays for at a time; owned, family, lent, spare, " +
			"overdraft, opportunistic, which it pays for now; headroom, which it may pay for besides.",
	}, []string{"budget", "envelope", "use"})
	BudgetGPUHours = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "budget_gpu_hours", StabilityLevel: metrics.ALPHA,
		Help: "GPU-hours of an envelope by kind: max, spent, promised to what runs, left of max, hourly at the present " +
			"rate, lost work.",
	}, []string{"budget", "envelope", "kind"})
	// RunsWaiting counts Runs that have been told why they do not start.
	RunsWaiting = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "runs_waiting", StabilityLevel: metrics.ALPHA,
		Help: "Runs that wait by reason, GPU type (other: the fleet has none of it), and whether they have a date: dated, " +
			"undated.",
	}, []string{"reason", "gpu_type", "date"})
)

// PromiseRevisions counts how often the date of a Reservation was changed.
var PromiseRevisions = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "promise_revisions_total", StabilityLevel: metrics.ALPHA,
	Help: "Changes of the date that a Run which waits had been promised, by direction: earlier, later.",
}, []string{"direction"})

// told is what was last told of gauges, by the values of their labels.
var (
	telling sync.Mutex
	told    = map[*metrics.GaugeVec]map[[3]string]bool{}
)

// Tell has gauges with three labels say what is so now, by the labels' values, and nothing else any more.
func Tell(of *metrics.GaugeVec, now map[[3]string]float64) {
	telling.Lock()
	defer telling.Unlock()
	before := told[of]
	told[of] = make(map[[3]string]bool, len(now))
	for key, value := range now {
		of.WithLabelValues(key[:]...).Set(value)
		told[of][key] = true
	}
	for key := range before {
		if !told[of][key] {
			of.DeleteLabelValues(key[:]...)
		}
	}
}
