package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/test/controlplane"
)

// counters reads the counters of a scheduler whose names start with a prefix, with the administrator's certificate:
// their sums over all labels, by name.
func (c *cluster) counters(ctx context.Context, of *controlplane.Process, prefix string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a stopped process never answers
	defer cancel()
	text, err := c.Metrics(ctx, of)
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, ok := strings.Cut(line, " ")
		if !ok || !strings.HasPrefix(name, prefix) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		name, _, _ = strings.Cut(name, "{")
		sums[name] += number
	}
	return sums, nil
}

// attempts is how many scheduling cycles the shared cluster's scheduler has had.
func attempts(t *testing.T, c *cluster) int {
	t.Helper()
	const name = "scheduler_schedule_attempts_total"
	sums, err := c.counters(t.Context(), c.Scheduler, name)
	if err != nil {
		t.Fatal(err)
	}
	return int(sums[name])
}
