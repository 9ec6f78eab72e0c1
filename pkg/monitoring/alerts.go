package monitoring

// Severity says who is to be told.
type Severity string

// Severities of alerts.
const (
	// Critical: somebody has to act now.
	Critical Severity = "critical"
	// Warning: somebody has to look within a day.
	Warning Severity = "warning"
	// Notice: worth knowing.
	Notice Severity = "info"
)

// Alert is one alert of Prometheus.
type Alert struct {
	Name string
	// Expr is true while something is wrong, and For is how long it has to be before somebody is told.
	Expr, For string
	Severity  Severity
	// Summary is a sentence for a pager, a template of Prometheus.
	Summary string
	// Runbook is the anchor in docs/operators.md.
	Runbook string
}

// runbooks is where the sections that alerts name are read.
const runbooks = "https://github.com/davidlangworthy/jobtree/blob/main/docs/operators.md#"

// RunbookURL is the address of the section that says what to do.
func (a *Alert) RunbookURL() string { return runbooks + a.Runbook }

// Alerts are all alerts.
var Alerts = []Alert{
	{Name: "JobtreeNotLeading", For: "5m", Severity: Critical, Runbook: "no-scheduler-leads",
		Expr:    `absent(jobtree_fleet_nodes{state="all"})`,
		Summary: "No jobtree scheduler leads, or it sees no node with GPUs: nothing starts, and nothing is replaced."},
	{Name: "JobtreeInvariantViolated", For: "1m", Severity: Critical, Runbook: "an-invariant-is-violated",
		Expr:    `sum by (invariant) (jobtree_invariant_violations) > 0`,
		Summary: "An invariant is violated: {{ $labels.invariant }}, {{ $value }} times."},
	{Name: "JobtreeAuditStale", For: "5m", Severity: Warning, Runbook: "an-invariant-is-violated",
		Expr:    `time() - max(jobtree_audit_last_look_timestamp_seconds > 0) > 600`,
		Summary: "The audit has not run for {{ $value | humanizeDuration }}: violations would not be seen."},
	{Name: "JobtreeNodesHeldBack", For: "1m", Severity: Critical, Runbook: "too-many-at-once",
		Expr:    `max(jobtree_nodes_held_back) > 0`,
		Summary: "{{ $value }} nodes show signs of loss and are not treated as lost, because too many do at once."},
	{Name: "JobtreeManyNodesLost", For: "0m", Severity: Warning, Runbook: "nodes-are-lost",
		Expr:    `sum(increase(jobtree_nodes_lost_total[1h])) > 5`,
		Summary: "{{ $value | humanize }} nodes under Runs were lost within an hour."},
	{Name: "JobtreeReplacementsSlow", For: "0m", Severity: Warning, Runbook: "nodes-are-lost",
		Expr: `histogram_quantile(0.9, sum by (le) (increase(jobtree_node_loss_rebind_seconds_bucket[30m]))) > 10`,
		Summary: "Nine in ten ranks of lost nodes were bound again only within {{ $value | humanizeDuration }}: " +
			"spares may be too few."},
	{Name: "JobtreePromisesBroken", For: "0m", Severity: Warning, Runbook: "runs-start-later-than-promised",
		Expr:    `sum(increase(jobtree_forecast_error_seconds_bucket{le=~"-600(.0)?"}[1h])) > 0`,
		Summary: "{{ $value | humanize }} Runs started more than ten minutes later than promised, within an hour."},
	{Name: "JobtreeCutsInVain", For: "0m", Severity: Warning, Runbook: "runs-start-later-than-promised",
		Expr: `sum by (cause) (increase(jobtree_cuts_in_vain_total{cause!~"CalledOff|Suspended"}[1h])) > 0`,
		Summary: "Runs were cut for a Run that then did not start: {{ $labels.cause }}, {{ $value | humanize }} cuts " +
			"within an hour."},
	{Name: "JobtreeCutsPaused", For: "24h", Severity: Notice, Runbook: "brakes-on-cuts",
		Expr:    `max(jobtree_cuts_paused) == 1`,
		Summary: "Cuts have been paused for a day: Runs wait beyond their dates."},
	{Name: "JobtreeRecordsUnstored", For: "15m", Severity: Warning, Runbook: "records-cannot-be-stored",
		Expr:    `max(jobtree_records_unstored) > 0`,
		Summary: "The records of {{ $value }} Budgets cannot be stored: their closed GPU leases pile up."},
	{Name: "JobtreeLedgerCrowded", For: "30m", Severity: Warning, Runbook: "too-many-closed-leases",
		Expr: `max(jobtree_closed_leases) > 1.1 * max(jobtree_closed_leases_limit)`,
		Summary: "The ledger keeps {{ $value }} closed GPU leases, more than its limit: a new leader takes " +
			"long to read them."},
	{Name: "JobtreeHistoryShortened", For: "0m", Severity: Notice, Runbook: "too-many-closed-leases",
		Expr:    `sum(increase(jobtree_leases_settled_early_total[1d])) > 0`,
		Summary: "{{ $value | humanize }} closed GPU leases were settled within a day before they were ledgerRetention old."},
	{Name: "JobtreeBookHeldLong", For: "15m", Severity: Warning, Runbook: "the-scheduler-is-slow",
		Expr:    `histogram_quantile(0.999, sum by (le) (rate(jobtree_book_held_seconds_bucket[15m]))) > 0.5`,
		Summary: "The scheduler's book is held for {{ $value | humanizeDuration }}: starts and swaps wait for it."},
	{Name: "JobtreeGPUHoursRunOut", For: "15m", Severity: Notice, Runbook: "gpu-hours-run-out",
		Expr: `jobtree_budget_gpu_hours{kind="left"} / ignoring(kind) ` +
			`(jobtree_budget_gpu_hours{kind="hourly"} > 0) < 24`,
		Summary: "GPU-hours of envelope {{ $labels.budget }}/{{ $labels.envelope }} run out in " +
			"{{ $value | humanize }} hours."},
}
