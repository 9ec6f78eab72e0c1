package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"text/tabwriter"

	"github.com/davidlangworthy/jobtree/test/perf/history"
)

// historyCase begins the names of the two cases with a past and without; one filter selects both.
const historyCase = "History/"

// Past is what the scheduler came into, and what that cost.
type Past struct {
	ClosedLeases int `json:"closedLeases"`
	EndedRuns    int `json:"endedRuns"`
	// LeadSeconds is from the start of the process until it decides, and Megabytes what it has in memory then.
	LeadSeconds float64 `json:"leadSeconds"`
	Megabytes   float64 `json:"megabytes"`
	// RatioToEmpty is the duration of the case over that without a past: 1 is as fast.
	RatioToEmpty float64 `json:"ratioToEmpty"`
}

// historyCases measures a start, and gangs, with a past and without, unless the filter leaves that out.
func historyCases(ctx context.Context, size history.Size, selected *regexp.Regexp, logs string) ([]result, error) {
	if !selected.MatchString(historyCase) {
		return nil, nil
	}
	fmt.Fprintf(os.Stderr, "perf: %s of %d closed Leases and %d Runs that have ended\n", historyCase, size.Leases,
		size.Runs)
	empty, full, err := history.Measure(ctx, size, filepath.Join(logs, "History-jobtree"))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var out []result
	for i, f := range []history.Figures{empty, full} {
		name := [...]string{"empty", "full"}[i]
		out = append(out, result{Case: fmt.Sprintf("%s%dx%d/%s", historyCase, size.Gangs, size.PodsPerGang, name),
			Scheduler: jobtree, Pods: f.Pods, Seconds: f.Seconds, PodsPerSecond: float64(f.Pods) / f.Seconds,
			Past: &Past{ClosedLeases: f.Leases, EndedRuns: f.Runs, LeadSeconds: f.LeadSeconds, Megabytes: f.Megabytes,
				RatioToEmpty: f.Seconds / empty.Seconds}})
	}
	return out, nil
}

// printHistory prints the cases with a past and without.
func printHistory(w io.Writer, results []result) {
	if len(results) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = table.Flush() }()
	row(table)
	row(table, "history", "closed Leases", "ended Runs", "s to lead", "MB", "pods", "seconds", "pods/s", "x empty")
	for _, r := range results {
		row(table, r.Case, fmt.Sprint(r.ClosedLeases), fmt.Sprint(r.EndedRuns), number(r.LeadSeconds), whole(r.Megabytes),
			fmt.Sprint(r.Pods), number(r.Seconds), number(r.PodsPerSecond), number(r.RatioToEmpty))
	}
}
