package monitoring

import "sigs.k8s.io/yaml"

// Case is what an alert is tested by: series with a value each minute, an instant at which it is quiet, and one at
// which it fires.
type Case struct {
	Alert        string
	Series       map[string]string
	Quiet, Fires string
	// Labels are those that the alert has beside its severity, and Summary is what it says then.
	Labels  map[string]string
	Summary string
}

// Cases has one case for each alert.
var Cases = []Case{
	{Alert: "JobtreeNotLeading", Series: map[string]string{
		`jobtree_fleet_nodes{domain="d",gpu_type="H100",state="all"}`: "4x5 stale _x30"},
		Quiet: "5m", Fires: "15m", Labels: map[string]string{"state": "all"},
		Summary: "No jobtree scheduler leads, or it sees no node with GPUs: nothing starts, and nothing is replaced."},
	{Alert: "JobtreeInvariantViolated", Series: map[string]string{
		`jobtree_invariant_violations{invariant="I1"}`: "0x10 2x10", `jobtree_invariant_violations{invariant="I2"}`: "0x20"},
		Quiet: "9m", Fires: "15m", Labels: map[string]string{"invariant": "I1"},
		Summary: "An invariant is violated: I1, 2 times."},
	{Alert: "JobtreeAuditStale", Series: map[string]string{`jobtree_audit_last_look_timestamp_seconds`: "1x60"},
		Quiet: "8m", Fires: "17m", Summary: "The audit has not run for 16m 59s: violations would not be seen."},
	{Alert: "JobtreeNodesHeldBack", Series: map[string]string{`jobtree_nodes_held_back`: "0x10 7x10"},
		Quiet: "9m", Fires: "15m",
		Summary: "7 nodes show signs of loss and are not treated as lost, because too many do at once."},
	{Alert: "JobtreeManyNodesLost", Series: map[string]string{
		`jobtree_nodes_lost_total{reason="OutOfService"}`: "0x60 4x60 16x60"},
		Quiet: "90m", Fires: "150m", Summary: "12 nodes under Runs were lost within an hour."},
	{Alert: "JobtreeReplacementsSlow", Series: map[string]string{
		`jobtree_node_loss_rebind_seconds_bucket{le="0.64"}`: "0x30 90x60",
		`jobtree_node_loss_rebind_seconds_bucket{le="20"}`:   "0x30 90x30 190x30",
		`jobtree_node_loss_rebind_seconds_bucket{le="40"}`:   "0x30 90x30 290x30",
		`jobtree_node_loss_rebind_seconds_bucket{le="+Inf"}`: "0x30 90x30 290x30"},
		Quiet: "45m", Fires: "75m",
		Summary: "Nine in ten ranks of lost nodes were bound again only within 36s: spares may be too few."},
	{Alert: "JobtreePromisesBroken", Series: map[string]string{
		`jobtree_forecast_error_seconds_bucket{le="-600.0"}`: "0x60 3x60",
		`jobtree_forecast_error_seconds_bucket{le="+Inf"}`:   "0x30 9x90"},
		Quiet: "45m", Fires: "90m",
		Summary: "3 Runs started more than ten minutes later than promised, within an hour."},
	{Alert: "JobtreeCutsInVain", Series: map[string]string{
		`jobtree_cuts_in_vain_total{cause="CalledOff"}`:    "0x30 5x90",
		`jobtree_cuts_in_vain_total{cause="VictimStayed"}`: "0x60 2x60"},
		Quiet: "45m", Fires: "90m", Labels: map[string]string{"cause": "VictimStayed"},
		Summary: "Runs were cut for a Run that then did not start: VictimStayed, 2 cuts within an hour."},
	{Alert: "JobtreeCutsPaused", Series: map[string]string{`jobtree_cuts_paused`: "1x1500"},
		Quiet: "23h", Fires: "24h5m", Summary: "Cuts have been paused for a day: Runs wait beyond their dates."},
	{Alert: "JobtreeRecordsUnstored", Series: map[string]string{`jobtree_records_unstored`: "0x10 3x60"},
		Quiet: "20m", Fires: "30m",
		Summary: "The records of 3 Budgets cannot be stored: their closed GPU leases pile up."},
	{Alert: "JobtreeLedgerCrowded", Series: map[string]string{`jobtree_closed_leases`: "1000x20 1500x60",
		`jobtree_closed_leases_limit`: "1000x80"}, Quiet: "40m", Fires: "60m",
		Summary: "The ledger keeps 1500 closed GPU leases, more than its limit: a new leader takes long to read them."},
	{Alert: "JobtreeHistoryShortened", Series: map[string]string{
		`jobtree_leases_settled_early_total`: "0x30 60x60"},
		Quiet: "20m", Fires: "60m",
		Summary: "60 closed GPU leases were settled within a day before they were ledgerRetention old."},
	{Alert: "JobtreeBookHeldLong", Series: map[string]string{
		`jobtree_book_held_seconds_bucket{le="0.256"}`: "0+600x90",
		`jobtree_book_held_seconds_bucket{le="1.024"}`: "0+600x20 12000+700x70",
		`jobtree_book_held_seconds_bucket{le="+Inf"}`:  "0+600x20 12000+700x70"},
		Quiet: "20m", Fires: "60m",
		Summary: "The scheduler's book is held for 1.019s: starts and swaps wait for it."},
	{Alert: "JobtreeGPUHoursRunOut", Series: map[string]string{
		`jobtree_budget_gpu_hours{budget="b",envelope="e",kind="left"}`:   "4000x20 120x60",
		`jobtree_budget_gpu_hours{budget="b",envelope="e",kind="hourly"}`: "10x90"},
		Quiet: "15m", Fires: "60m", Labels: map[string]string{"budget": "b", "envelope": "e"},
		Summary: "GPU-hours of envelope b/e run out in 12 hours."},
}

// Tests returns the cases as promtool reads them; rules is the file with the alerts.
func Tests(rules string) ([]byte, error) {
	alerts := map[string]*Alert{}
	for i := range Alerts {
		alerts[Alerts[i].Name] = &Alerts[i]
	}
	var tests []object
	for _, c := range Cases {
		a := alerts[c.Alert]
		var series []object
		for name, values := range c.Series {
			series = append(series, object{"series": name, "values": values})
		}
		labels := map[string]string{"severity": string(a.Severity)}
		for label, value := range c.Labels {
			labels[label] = value
		}
		tests = append(tests, object{"interval": "1m", "input_series": series, "alert_rule_test": []object{
			{"eval_time": c.Quiet, "alertname": c.Alert},
			{"eval_time": c.Fires, "alertname": c.Alert, "exp_alerts": []object{{"exp_labels": labels,
				"exp_annotations": object{"summary": c.Summary, "runbook_url": a.RunbookURL()}}}},
		}})
	}
	return yaml.Marshal(object{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": tests})
}
