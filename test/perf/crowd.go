package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"text/tabwriter"

	"github.com/davidlangworthy/jobtree/test/perf/rebind"
)

// crowdCase begins the names of the cases beside a crowd; one filter selects all of them.
const crowdCase = "Crowd/"

// crowd is a fleet that is nearly full, and who waits for it.
type crowd struct {
	fleet rebind.Size
	waits rebind.Crowd
}

// crowdCases measures what goes on beside a crowd that waits, and what that takes, unless the filter leaves that out.
func crowdCases(ctx context.Context, size crowd, selected *regexp.Regexp, logs string) (rows, costs []result,
	err error) {
	if !selected.MatchString(crowdCase) {
		return nil, nil, nil
	}
	fmt.Fprintf(os.Stderr, "perf: the fleet for %s and %d Runs of %d pods\n", crowdCase, size.waits.Runs, size.waits.Pods)
	cases, took, err := rebind.MeasureCrowd(ctx, size.fleet, size.waits, filepath.Join(logs, "Crowd-jobtree.log"))
	if err != nil {
		err = fmt.Errorf("crowd: %w", err)
	}
	for _, c := range cases {
		rows = append(rows, result{Case: c.Name, Scheduler: jobtree, Distribution: &c.Distribution})
	}
	if took != nil {
		costs = append(costs, result{Case: crowdCase + "costs", Scheduler: jobtree, Crowd: took})
	}
	return rows, costs, err
}

// printCrowds prints what crowds took.
func printCrowds(w io.Writer, crowds []result) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = table.Flush() }()
	for _, r := range crowds {
		c := r.Crowd
		row(table)
		row(table, r.Case, "Runs that wait", "their pods")
		row(table, "", fmt.Sprint(c.Waiting), fmt.Sprint(c.Pods))
		row(table, "book held for", "at most ms")
		for _, share := range slices.Sorted(maps.Keys(c.HeldWithin)) {
			row(table, share, number(1000*c.HeldWithin[share]))
		}
		printMemory(table, c.PeakBytes)
	}
}

// printMemory prints the most memory that each process had.
func printMemory(table io.Writer, peakBytes map[string]int64) {
	row(table, "peak memory", "MiB")
	for _, name := range slices.Sorted(maps.Keys(peakBytes)) {
		row(table, name, fmt.Sprint(peakBytes[name]>>20))
	}
}
