package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/davidlangworthy/jobtree/test/perf/rebind"
)

// rebindCase begins the name of every case of lost nodes; one filter selects or leaves out all of them, since they
// share a fleet.
const rebindCase = "Rebind/"

// rebindCases measures how long lost ranks are without a node, unless the filter leaves that out.
func rebindCases(ctx context.Context, size rebind.Size, selected *regexp.Regexp, logs string) ([]result, error) {
	if !selected.MatchString(rebindCase) {
		return nil, nil
	}
	fmt.Fprintln(os.Stderr, "perf: the fleet for "+rebindCase)
	cases, err := rebind.Measure(ctx, size, filepath.Join(logs, "Rebind-jobtree.log"))
	if err != nil {
		err = fmt.Errorf("rebind: %w", err)
	}
	var results []result
	for _, c := range cases {
		results = append(results, result{Case: c.Name, Scheduler: jobtree, Distribution: &c.Distribution})
	}
	return results, err
}
