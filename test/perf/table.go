package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// printTable prints the workloads and, under them, the planner's benchmarks and the distributions of rebind times.
func printTable(w io.Writer, results, planner, rebinds []result) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = table.Flush() }()
	row(table, "case", "scheduler", "pods", "seconds", "cpu s", "pods/s", "x stock", "x Runs", "x single pods",
		"attempt p99 ms")
	for _, r := range results {
		row(table, r.Case, r.Scheduler, fmt.Sprint(r.Pods), number(r.Seconds), number(r.CPUSeconds), number(r.PodsPerSecond),
			number(r.RatioToStock), number(r.RatioToRuns), number(r.RatioToSinglePods),
			number(r.AttemptP99Milliseconds))
	}
	if len(planner) > 0 {
		row(table)
		row(table, "planner", "", "ns/op", "B/op", "allocs/op")
	}
	for _, r := range planner {
		row(table, r.Case, r.Scheduler, whole(r.NanosecondsPerOp), whole(r.BytesPerOp), whole(r.AllocsPerOp))
	}
	if len(rebinds) > 0 {
		row(table)
		row(table, "seconds until", "", "samples", "min", "p50", "p90", "p99", "max", "target for p99")
	}
	for _, r := range rebinds {
		d := r.Distribution
		row(table, r.Case, r.Scheduler, fmt.Sprint(d.Samples), millis(d.Min), millis(d.P50), millis(d.P90), millis(d.P99),
			millis(d.Max), verdict(d.Target, d.Met()))
	}
}

// printBacklogs prints how fast queues were worked off, how long the Runs of each class waited for their start, and
// what memory that took.
func printBacklogs(w io.Writer, backlogs []result) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = table.Flush() }()
	for _, r := range backlogs {
		b := r.Backlog
		row(table)
		row(table, r.Case, "Runs", "seconds", "Runs/s", "target for seconds")
		row(table, "all", fmt.Sprint(b.Runs), number(b.Seconds), number(float64(b.Runs)/b.Seconds),
			verdict(b.Target, b.Seconds < b.Target))
		row(table, "seconds to start", "Runs", "mean", "p95")
		for _, c := range b.Classes {
			row(table, c.Name, fmt.Sprint(c.Runs), millis(c.Mean), millis(c.P95))
		}
		printMemory(table, b.PeakBytes)
	}
}

// verdict says whether a target is met; a dash for what has none.
func verdict(target float64, met bool) string {
	switch {
	case target == 0:
		return "-"
	case met:
		return fmt.Sprintf("%.0f met", target)
	}
	return fmt.Sprintf("%.0f MISSED", target)
}

// millis shows seconds to the millisecond.
func millis(v float64) string { return fmt.Sprintf("%.3f", v) }

// row writes one line; every cell ends in a tab, so that all columns align.
func row(w io.Writer, cells ...string) {
	for _, cell := range cells {
		fmt.Fprint(w, cell, "\t")
	}
	fmt.Fprintln(w)
}

// number shows two digits after the point, or a dash for what was not measured.
func number(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// writeJSON writes the rows as a list.
func writeJSON(name string, results []result) error {
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}
