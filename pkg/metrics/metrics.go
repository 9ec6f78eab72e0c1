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
		Help: "Times that a Run entered a phase, by phase.",
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
	// RankEnds counts the ranks that failed, by whose doing (R33).
	RankEnds = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "rank_ends_total", StabilityLevel: metrics.ALPHA,
		Help: "Ranks that ended in failure, by cause: Node, Program, User, Scheduler.",
	}, []string{"cause"})
	// LostGPUSeconds counts the work that was lost, by whose doing (R45).
	LostGPUSeconds = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "lost_gpu_seconds_total", StabilityLevel: metrics.ALPHA,
		Help: "Work lost, in GPU-seconds since it was last saved, by cause: Node, Program, User, Scheduler.",
	}, []string{"cause"})
	// PlanSeconds is how long it takes to place a pod. Only a gang's leader plans; the others follow.
	PlanSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "gang_plan_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time to place a pod of a Run; a gang's first pod plans the whole gang.",
		Buckets: metrics.ExponentialBuckets(0.00001, 4, 9),
	})
)

// BookHeldSeconds is for how long the lock is held that scheduling cycles, watches and swaps wait for.
var BookHeldSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
	Subsystem: subsystem, Name: "book_held_seconds", StabilityLevel: metrics.ALPHA,
	Help:    "Time for which the scheduler's book was held: everything else that reads or changes it waits.",
	Buckets: metrics.ExponentialBuckets(0.0005, 2, 12),
})

// Cuts counts what activations did to Runs that held GPUs, by action (R19).
var Cuts = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "cuts_total", StabilityLevel: metrics.ALPHA,
	Help: "Cuts that activations of Reservations made, by action.",
}, []string{"action"})

// CutsInVain counts the cuts of activations by which their Run did not start, by cause (I10).
var CutsInVain = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "cuts_in_vain_total", StabilityLevel: metrics.ALPHA,
	Help: "Cuts of activations by which the Run did not start, by what came between: VictimStayed, " +
		"NodesRejected, RoomTaken, CalledOff, Suspended.",
}, []string{"cause"})

// Draws counts tickets drawn (R20).
var Draws = metrics.NewCounter(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "lottery_draws_total", StabilityLevel: metrics.ALPHA,
	Help: "Tickets drawn in lotteries, whether or not the Run had to be cut in the end.",
})

// ForecastSeconds is how long it takes to work out when a Run starts.
var ForecastSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
	Subsystem: subsystem, Name: "forecast_duration_seconds", StabilityLevel: metrics.ALPHA,
	Help:    "Time to work out when a Run that is refused is going to start, and to decide about it when that is now.",
	Buckets: metrics.ExponentialBuckets(0.0001, 4, 9),
})

// ForecastError is by how much Runs started earlier than promised; negative when later.
var ForecastError = metrics.NewHistogram(&metrics.HistogramOpts{
	Subsystem: subsystem, Name: "forecast_error_seconds", StabilityLevel: metrics.ALPHA,
	Help:    "Promised minus actual start of Runs that had a Reservation; positive when they started early.",
	Buckets: []float64{-3600, -600, -60, -10, -1, 0, 1, 10, 60, 600, 3600},
})

// AdmissionSeconds is how long Runs waited from their creation until they had started, by how they came to start.
var AdmissionSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
	Subsystem: subsystem, Name: "admission_duration_seconds", StabilityLevel: metrics.ALPHA,
	Help: "Time from a Run's creation, or its return to Pending, until all of it was bound, by outcome: immediate, " +
		"reserved, activated.",
	Buckets: metrics.ExponentialBuckets(0.1, 4, 10),
}, []string{"outcome"})

// WidthChanges counts how often Runs that run changed their width, by change (R23, R24).
var WidthChanges = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "run_width_changes_total", StabilityLevel: metrics.ALPHA,
	Help: "Changes of the width of Runs that run, by change: grew, shrunk, or givenUp for growth that came to nothing.",
}, []string{"change"})

// ReservationsWaiting counts the Reservations that wait, and OldestReservation is the age of the oldest.
var (
	ReservationsWaiting = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "reservations_waiting", StabilityLevel: metrics.ALPHA,
		Help: "Reservations that are pending or activating.",
	})
	OldestReservation = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "oldest_reservation_age_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Age of the oldest Reservation that is pending or activating; 0 when there is none.",
	})
)

// RunsInLine counts the Runs waiting to be processed, by lane: what frees GPUs, what is bound, what begins, dates, and
// what goes.
var RunsInLine = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Subsystem: subsystem, Name: "runs_in_line", StabilityLevel: metrics.ALPHA,
	Help: "Runs waiting to be processed, by lane: frees, binds, begins, dates, expiries.",
}, []string{"lane"})

// HeldGPUs is what open Leases hold, by role: what runs, spares that stand by, and opportunistic shards.
var HeldGPUs = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Subsystem: subsystem, Name: "held_gpus", StabilityLevel: metrics.ALPHA,
	Help: "GPUs of open GPU leases, by role: Active, Spare, Borrowed.",
}, []string{"role"})

// NodesLost counts the nodes that were found to be lost while they held GPUs of Runs, by reason (R25).
var NodesLost = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "nodes_lost_total", StabilityLevel: metrics.ALPHA,
	Help: "Nodes that held GPUs of Runs and were found to be lost, by reason.",
}, []string{"reason"})

// NodesHeldBack is how many nodes show signs of loss and are not taken for lost, since too many do at once (R25).
var NodesHeldBack = metrics.NewGauge(&metrics.GaugeOpts{
	Subsystem: subsystem, Name: "nodes_held_back", StabilityLevel: metrics.ALPHA,
	Help: "Nodes that hold GPUs of Runs, show signs of loss, and are not treated as lost, because more nodes do at once " +
		"than nodeLossLimit allows.",
})

// DetectionSeconds, DecisionSeconds and RebindSeconds are the parts of the time from the first sign of a node's loss
// until its ranks are bound elsewhere.
var (
	DetectionSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "node_loss_detection_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time from the first sign that a node is lost until there was evidence: for silence, the configured " +
			"grace and more.",
		Buckets: []float64{0.1, 1, 5, 10, 15, 20, 21, 22, 25, 30, 60, 120},
	})
	DecisionSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "node_loss_decision_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from the evidence that a node is lost until that was confirmed and recorded on it.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 12),
	})
	RebindSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "node_loss_rebind_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from the record that a node is lost until the replacement of one of its ranks was bound.",
		Buckets: metrics.ExponentialBuckets(0.02, 2, 14),
	})
)

// Swaps counts ranks that have been given another node, by where its room came from: spare or free (R26, R27).
var Swaps = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "swaps_total", StabilityLevel: metrics.ALPHA,
	Help: "Replacements of lost ranks that were bound, by source of their room: spare, free.",
}, []string{"source"})

// RecordsUnstored is how many Budgets have a record of settled Leases that could not be stored: their Leases are kept
// (R9).
var RecordsUnstored = metrics.NewGauge(&metrics.GaugeOpts{
	Subsystem: subsystem, Name: "records_unstored", StabilityLevel: metrics.ALPHA,
	Help: "Budgets whose record of settled GPU leases could not be stored the last time; their leases are kept " +
		"until it is.",
})

// ClosedLeases is how many closed Leases the ledger keeps, ClosedLeasesLimit how many it is to keep at most, and
// LeasesSettledEarly counts those that went for the limit before they had the age at which all go (R9).
var (
	ClosedLeases = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "closed_leases", StabilityLevel: metrics.ALPHA,
		Help: "Closed GPU leases that the ledger keeps.",
	})
	ClosedLeasesLimit = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "closed_leases_limit", StabilityLevel: metrics.ALPHA,
		Help: "Closed GPU leases that the ledger keeps at most: ledgerLimit.",
	})
	LeasesSettledEarly = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "leases_settled_early_total", StabilityLevel: metrics.ALPHA,
		Help: "Closed GPU leases that were settled for ledgerLimit before they were ledgerRetention old.",
	})
)

// Register adds the metrics to the process's registry. It may be called again.
func Register() {
	for _, m := range []metrics.Registerable{Refusals, Phases, LeasesOpened, LeasesClosed, RankEnds, LostGPUSeconds,
		PlanSeconds, Cuts, CutsInVain,
		Draws, BookHeldSeconds,
		ForecastSeconds, ForecastError, AdmissionSeconds, WidthChanges, ReservationsWaiting, OldestReservation,
		RunsInLine, HeldGPUs, NodesLost, NodesHeldBack, CutsPaused, RunsCutLastHour, CalledOff,
		DetectionSeconds, DecisionSeconds, RebindSeconds, Swaps, RecordsUnstored,
		ClosedLeases, ClosedLeasesLimit, LeasesSettledEarly,
		AuditLook, InvariantViolations, InvariantViolationsFound,
		FleetGPUs, FleetNodes, BudgetGPUs, BudgetGPUHours, RunsWaiting, PromiseRevisions} {
		_ = legacyregistry.Register(m) // registered already: the process has composed itself before
	}
	countFromZero()
}
