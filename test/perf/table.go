package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// printTable prints the workloads and, under them, the planner's benchmarks.
func printTable(w io.Writer, results, planner []result) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = table.Flush() }()
	row(table, "case", "scheduler", "pods", "seconds", "cpu s", "pods/s", "x stock", "x single pods", "attempt p99 ms")
	for _, r := range results {
		row(table, r.Case, r.Scheduler, fmt.Sprint(r.Pods), number(r.Seconds), number(r.CPUSeconds), number(r.PodsPerSecond),
			number(r.RatioToStock), number(r.RatioToSinglePods), number(r.AttemptP99Milliseconds))
	}
	if len(planner) == 0 {
		return
	}
	row(table)
	row(table, "planner", "", "ns/op", "B/op", "allocs/op")
	for _, r := range planner {
		row(table, r.Case, r.Scheduler, whole(r.NanosecondsPerOp), whole(r.BytesPerOp), whole(r.AllocsPerOp))
	}
}

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
