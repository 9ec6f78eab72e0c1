package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"text/tabwriter"

	"github.com/davidlangworthy/jobtree/test/perf/commands"
)

// commandsCase begins the name of every case of commands; one filter selects all of them, since they share a cluster.
const commandsCase = "Commands/"

// commandCases measures how long commands take, unless the filter leaves that out.
func commandCases(ctx context.Context, size commands.Size, selected *regexp.Regexp, logs string) ([]result, error) {
	if !selected.MatchString(commandsCase) {
		return nil, nil
	}
	fmt.Fprintf(os.Stderr, "perf: %d Runs for %s\n", size.Runs, commandsCase)
	cases, err := commands.Measure(ctx, size, filepath.Join(logs, "Commands-jobtree.log"))
	if err != nil {
		err = fmt.Errorf("commands: %w", err)
	}
	var results []result
	for _, c := range cases {
		results = append(results, result{Case: c.Name, Scheduler: jobtree, CPUSeconds: c.CPUSeconds,
			Distribution: &c.Distribution})
	}
	return results, err
}

// printCommands prints how long commands took.
func printCommands(w io.Writer, results []result) {
	if len(results) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = table.Flush() }()
	row(table)
	row(table, "milliseconds of a command", "samples", "min", "p50", "p99", "its own cpu", "target for p99")
	for _, r := range results {
		d := r.Distribution
		row(table, r.Case, fmt.Sprint(d.Samples), whole(1000*d.Min), whole(1000*d.P50), whole(1000*d.P99),
			whole(1000*r.CPUSeconds), verdict(1000*d.Target, d.Met()))
	}
}
