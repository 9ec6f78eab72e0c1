package monitoring

// Dashboard is one dashboard of Grafana.
type Dashboard struct {
	// Name is that of its file, UID the one under which Grafana keeps it.
	Name, UID, Title string
	Rows             []Row
}

// Row is panels side by side, under a title.
type Row struct {
	Title  string
	Panels []Panel
}

// Kind is how a panel draws.
type Kind string

// Kinds of panels, as Grafana calls them.
const (
	Series Kind = "timeseries"
	Stat   Kind = "stat"
	Bars   Kind = "bargauge"
)

// Panel is one picture.
type Panel struct {
	Title string
	Kind  Kind
	// Unit is one of Grafana's: short, s, percentunit.
	Unit    string
	Stacked bool
	// Help says what is seen.
	Help    string
	Queries []Query
}

// Query is one expression of Prometheus and the name of what it gives.
type Query struct{ Expr, Legend string }

// Dashboards are all dashboards.
var Dashboards = []Dashboard{operator, finance}

var operator = Dashboard{Name: "dashboard-operator.json", UID: "jobtree-operator", Title: "jobtree: fleet", Rows: []Row{
	{"Health", []Panel{
		{Title: "Violations of invariants", Kind: Stat, Unit: "short", Help: "More than 0 is an error of the scheduler.",
			Queries: []Query{{`sum(jobtree_invariant_violations)`, ""}}},
		{Title: "Nodes held back", Kind: Stat, Unit: "short", Help: "Nodes with signs of loss that are not treated as lost.",
			Queries: []Query{{`max(jobtree_nodes_held_back)`, ""}}},
		{Title: "Cuts paused", Kind: Stat, Unit: "short", Queries: []Query{{`max(jobtree_cuts_paused)`, ""}}},
		{Title: "Budgets whose record cannot be stored", Kind: Stat, Unit: "short",
			Queries: []Query{{`max(jobtree_records_unstored)`, ""}}},
	}},
	{"Fleet", []Panel{
		{Title: "GPUs by role", Kind: Series, Unit: "short", Stacked: true,
			Queries: []Query{{`sum by (role) (jobtree_held_gpus)`, "{{role}}"},
				{`sum(jobtree_fleet_gpus{state="free"})`, "free"}}},
		{Title: "Free GPUs by domain", Kind: Bars, Unit: "short",
			Queries: []Query{{`sum by (domain) (jobtree_fleet_gpus{state="free"})`, "{{domain}}"}}},
		{Title: "Promised GPUs by domain", Kind: Bars, Unit: "short", Help: "Intended for Runs that wait and have a date.",
			Queries: []Query{{`sum by (domain) (jobtree_fleet_gpus{state="promised"})`, "{{domain}}"}}},
		{Title: "Nodes out of service", Kind: Series, Unit: "short", Stacked: true,
			Queries: []Query{{`sum by (domain) (jobtree_fleet_nodes{state="out_of_service"}) > 0`, "{{domain}}"}}},
	}},
	{"Waiting", []Panel{
		{Title: "Runs that wait, by reason", Kind: Series, Unit: "short", Stacked: true,
			Queries: []Query{{`sum by (reason, date) (jobtree_runs_waiting)`, "{{reason}}, {{date}}"}}},
		{Title: "Time to start", Kind: Series, Unit: "s", Queries: []Query{
			{`histogram_quantile(0.5, sum by (le, outcome) (rate(jobtree_admission_duration_seconds_bucket[30m])))`,
				"half of {{outcome}}"},
			{`histogram_quantile(0.95, sum by (le, outcome) (rate(jobtree_admission_duration_seconds_bucket[30m])))`,
				"95 % of {{outcome}}"}}},
		{Title: "How well promises are kept", Kind: Series, Unit: "s", Help: "Positive: started earlier than promised.",
			Queries: []Query{
				{`histogram_quantile(0.05, sum by (le) (rate(jobtree_forecast_error_seconds_bucket[6h])))`, "worst 5 %"},
				{`histogram_quantile(0.5, sum by (le) (rate(jobtree_forecast_error_seconds_bucket[6h])))`, "half"}}},
		{Title: "Dates changed in an hour", Kind: Series, Unit: "short",
			Queries: []Query{{`sum by (direction) (increase(jobtree_promise_revisions_total[1h]))`, "{{direction}}"}}},
	}},
	{"Making room", []Panel{
		{Title: "Cuts in an hour", Kind: Series, Unit: "short", Stacked: true,
			Queries: []Query{{`sum by (action) (increase(jobtree_cuts_total[1h]))`, "{{action}}"},
				{`sum by (cause) (increase(jobtree_cuts_in_vain_total[1h]))`, "in vain: {{cause}}"}}},
		{Title: "Tickets drawn in an hour", Kind: Series, Unit: "short",
			Queries: []Query{{`sum(increase(jobtree_lottery_draws_total[1h]))`, "tickets"}}},
	}},
	{"Failures", []Panel{
		{Title: "Nodes lost in an hour", Kind: Series, Unit: "short", Stacked: true,
			Queries: []Query{{`sum by (reason) (increase(jobtree_nodes_lost_total[1h]))`, "{{reason}}"}}},
		{Title: "From record to replacement", Kind: Series, Unit: "s", Queries: []Query{
			{`histogram_quantile(0.5, sum by (le) (rate(jobtree_node_loss_rebind_seconds_bucket[6h])))`, "half"},
			{`histogram_quantile(0.99, sum by (le) (rate(jobtree_node_loss_rebind_seconds_bucket[6h])))`, "99 %"}}},
		{Title: "Replacements in an hour, by where their room came from", Kind: Series, Unit: "short", Stacked: true,
			Queries: []Query{{`sum by (source) (increase(jobtree_swaps_total[1h]))`, "{{source}}"}}},
		{Title: "Lost GPU-hours in a day, by cause", Kind: Series, Unit: "short", Stacked: true,
			Queries: []Query{{`sum by (cause) (increase(jobtree_lost_gpu_seconds_total[1d])) / 3600`, "{{cause}}"}}},
	}},
	{"The scheduler itself", []Panel{
		{Title: "Runs to be processed, by lane", Kind: Series, Unit: "short", Stacked: true,
			Queries: []Query{{`sum by (lane) (jobtree_runs_in_line)`, "{{lane}}"}}},
		{Title: "Book held", Kind: Series, Unit: "s", Queries: []Query{
			{`histogram_quantile(0.99, sum by (le) (rate(jobtree_book_held_seconds_bucket[5m])))`, "99 %"},
			{`histogram_quantile(0.999, sum by (le) (rate(jobtree_book_held_seconds_bucket[5m])))`, "99.9 %"}}},
		{Title: "GPU leases a second", Kind: Series, Unit: "short", Queries: []Query{
			{`sum(rate(jobtree_leases_opened_total[5m]))`, "opened"},
			{`sum by (reason) (rate(jobtree_leases_closed_total[5m]))`, "closed: {{reason}}"}}},
	}},
}}

var finance = Dashboard{Name: "dashboard-finance.json", UID: "jobtree-finance", Title: "jobtree: money", Rows: []Row{
	{"Budgets", []Panel{
		{Title: "GPUs paid for, by envelope", Kind: Series, Unit: "short", Stacked: true, Queries: []Query{
			{`sum by (budget, envelope) (jobtree_budget_gpus{use=~"owned|family|lent|spare|overdraft"})`,
				"{{budget}}/{{envelope}}"}}},
		{Title: "Share of the concurrency in use", Kind: Bars, Unit: "percentunit", Queries: []Query{
			{`sum by (budget, envelope) (jobtree_budget_gpus{use=~"owned|family|lent|spare|overdraft"}) / ` +
				`(sum by (budget, envelope) (jobtree_budget_gpus{use="concurrency"}) > 0)`, "{{budget}}/{{envelope}}"}}},
	}},
	{"GPU-hours", []Panel{
		{Title: "Share of allowed GPU-hours spent", Kind: Bars, Unit: "percentunit", Queries: []Query{
			{`sum by (budget, envelope) (jobtree_budget_gpu_hours{kind="spent"}) / ` +
				`(sum by (budget, envelope) (jobtree_budget_gpu_hours{kind="max"}) > 0)`, "{{budget}}/{{envelope}}"}}},
		{Title: "Hours until GPU-hours run out", Kind: Bars, Unit: "short", Queries: []Query{
			{`sum by (budget, envelope) (jobtree_budget_gpu_hours{kind="left"}) / ` +
				`(sum by (budget, envelope) (jobtree_budget_gpu_hours{kind="hourly"}) > 0)`, "{{budget}}/{{envelope}}"}}},
		{Title: "Spent an hour", Kind: Series, Unit: "short", Stacked: true, Queries: []Query{
			{`sum by (budget, envelope) (jobtree_budget_gpu_hours{kind="hourly"})`, "{{budget}}/{{envelope}}"}}},
	}},
	{"Who pays for whom, and what is lost", []Panel{
		{Title: "GPUs by use", Kind: Series, Unit: "short", Stacked: true, Queries: []Query{
			{`sum by (use) (jobtree_budget_gpus{use=~"owned|family|lent|spare|overdraft|opportunistic"})`, "{{use}}"}}},
		{Title: "Overdraft by envelope", Kind: Series, Unit: "short", Stacked: true, Queries: []Query{
			{`sum by (budget, envelope) (jobtree_budget_gpus{use="overdraft"}) > 0`, "{{budget}}/{{envelope}}"}}},
		{Title: "Lost GPU-hours by envelope", Kind: Bars, Unit: "short", Queries: []Query{
			{`sum by (budget, envelope) (jobtree_budget_gpu_hours{kind="lost"}) > 0`, "{{budget}}/{{envelope}}"}}},
	}},
}}
