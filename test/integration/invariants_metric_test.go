package integration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// auditFound is an error if the scheduler's own audit has found anything about this site since it began to run. What
// it has found about others on a shared cluster is theirs, or for the end of all tests.
func (s *site) auditFound(ctx context.Context) error {
	found, err := s.audits(ctx)
	if s.cluster == live.cluster {
		found = slices.DeleteFunc(found, func(line string) bool { return !strings.Contains(line, s.namespace) })
	}
	return errors.Join(err, violated(found))
}

// violated is an error with what an audit has found; nil for nothing.
func violated(found []string) error {
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("the scheduler's audit has found violations:\n  %s", strings.Join(found, "\n  "))
}

// audits returns what the scheduler's own audit has found since it began to run.
func (c *cluster) audits(ctx context.Context) ([]string, error) {
	const gauge, counter = "jobtree_invariant_violations", "jobtree_invariant_violations_found_total"
	if c.Scheduler == nil || !c.Scheduler.Running() {
		return nil, nil
	}
	var sums map[string]float64
	if err := within(patience, func() (err error) { // a machine that is busy answers late
		sums, err = c.counters(ctx, c.Scheduler, gauge)
		return err
	}); err != nil {
		return nil, fmt.Errorf("the audit's metric: %w", err)
	}
	_, standing := sums[gauge]
	_, ever := sums[counter]
	if !standing || !ever {
		return nil, fmt.Errorf("the scheduler does not export %s and %s, only %v", gauge, counter, sums)
	}
	if sums[gauge] == 0 && sums[counter] == 0 {
		return nil, nil
	}
	var told []string
	for line := range strings.SplitSeq(c.Scheduler.LogTail(math.MaxInt), "\n") {
		if strings.Contains(line, "The audit found a problem") {
			told = append(told, line)
		}
	}
	if len(told) == 0 {
		return nil, fmt.Errorf("the scheduler counts %v violations and has logged none", sums)
	}
	return told, nil
}
