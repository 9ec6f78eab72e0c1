// Command perf measures jobtree beside the default scheduler and prints one table:
//
//	go run ./test/perf [-size full|tiny] [-case REGEXP] [-out bench/latest.json]
//
// Run it from the root of the repository, with the tools and the scheduler in bin/. Size full is 5,000 nodes in 50
// domains and takes about half an hour; tiny is 50 nodes and takes two minutes once built. Every workload runs in a
// process of its own, the default scheduler's and ours in turn, so that a machine that slows down slows both. The
// figures of the table are written to -out as JSON, and each workload's log is kept beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	size := flag.String("size", "full", "full or tiny")
	filter := flag.String("case", "", "regular expression that selects cases; empty selects all")
	out := flag.String("out", filepath.Join("bench", "latest.json"), "file for the figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *size, *filter, *out); err != nil {
		fmt.Fprintln(os.Stderr, "perf:", err)
		stop()
		os.Exit(1)
	}
}

// run measures every selected case, prints the table and writes the figures, also of a run in which some case failed.
func run(ctx context.Context, size, filter, out string) error {
	selected, err := regexp.Compile(filter)
	if err != nil {
		return fmt.Errorf("-case: %w", err)
	}
	plan, ok := sizes[size]
	if !ok {
		return fmt.Errorf("-size must be full or tiny, not %q", size)
	}
	log.SetLogger(klog.Background()) // controller-runtime complains without one
	logs := filepath.Dir(out)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	results, errs := measureAll(ctx, size, logs, plan.only(selected))
	planner, err := plannerBenchmarks(ctx, plan.plannerTime, selected)
	errs = append(errs, err)
	rebinds, err := rebindCases(ctx, plan.rebind, selected, logs)
	errs = append(errs, err)
	crowded, crowds, err := crowdCases(ctx, plan.crowd, selected, logs)
	errs = append(errs, err)
	rebinds = append(rebinds, crowded...)
	backlogs, err := backlogCases(ctx, plan.backlog, selected, logs)
	errs = append(errs, err)
	histories, err := historyCases(ctx, plan.history, selected, logs)
	errs = append(errs, err)
	commands, err := commandCases(ctx, plan.commands, selected, logs)
	errs = append(errs, err)
	addRatios(results)
	printTable(os.Stdout, results, planner, rebinds)
	printCrowds(os.Stdout, crowds)
	printBacklogs(os.Stdout, backlogs)
	printHistory(os.Stdout, histories)
	printCommands(os.Stdout, commands)
	errs = append(errs, writeJSON(out, slices.Concat(results, planner, rebinds, crowds, backlogs, histories, commands)))
	return errors.Join(errs...)
}
