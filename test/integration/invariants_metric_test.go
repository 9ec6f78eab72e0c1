package integration

import (
	"context"
	"fmt"
	"strings"
)

// audits is an error if the scheduler's own audit has found anything since it began to run.
func (c *cluster) audits(ctx context.Context) error {
	const gauge, counter = "jobtree_invariant_violations", "jobtree_invariant_violations_found_total"
	if c.Scheduler == nil || !c.Scheduler.Running() {
		return nil
	}
	var sums map[string]float64
	if err := within(patience, func() (err error) { // a machine that is busy answers late
		sums, err = c.counters(ctx, c.Scheduler, gauge)
		return err
	}); err != nil {
		return fmt.Errorf("the audit's metric: %w", err)
	}
	_, standing := sums[gauge]
	_, ever := sums[counter]
	if !standing || !ever {
		return fmt.Errorf("the scheduler does not export %s and %s, only %v", gauge, counter, sums)
	}
	if sums[gauge] == 0 && sums[counter] == 0 {
		return nil
	}
	var told []string
	for line := range strings.SplitSeq(c.Scheduler.LogTail(100000), "\n") {
		if strings.Contains(line, "The audit found a problem") {
			told = append(told, line)
		}
	}
	return fmt.Errorf("the scheduler's audit has found %v violations:\n  %s", sums[counter], strings.Join(told, "\n  "))
}
