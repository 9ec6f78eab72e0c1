package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/davidlangworthy/jobtree/test/perf/backlog"
)

// backlogCase is the name of the case of many queues.
const backlogCase = "Backlog/"

// backlogCases measures how fast queues are worked off, unless the filter leaves that out.
func backlogCases(ctx context.Context, size backlog.Size, selected *regexp.Regexp, logs string) ([]result, error) {
	if !selected.MatchString(backlogCase) {
		return nil, nil
	}
	fmt.Fprintln(os.Stderr, "perf: the queues for "+backlogCase)
	outcome, err := backlog.Measure(ctx, size, filepath.Join(logs, "Backlog-jobtree.log"))
	if err != nil {
		return nil, fmt.Errorf("backlog: %w", err)
	}
	return []result{{Case: fmt.Sprintf("%s%d", backlogCase, outcome.Runs), Scheduler: jobtree, Backlog: outcome}}, nil
}
