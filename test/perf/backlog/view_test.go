package backlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWaited takes the mean and the 95th percentile over the Runs of one class.
func TestWaited(t *testing.T) {
	v, noon := newView(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range 20 {
		v.runs[fmt.Sprintf("small-0-%d", i)] = life{submitted: noon, bound: noon.Add(time.Duration(i+1) * time.Second)}
	}
	v.runs["large-0-0"] = life{submitted: noon, bound: noon.Add(time.Hour)}
	if diff := cmp.Diff(Class{Name: "small", Runs: 20, Mean: 10.5, P95: 19}, v.waited("small")); diff != "" {
		t.Error(diff)
	}
}

// TestRuns counts those of Kueue's baseline.
func TestRuns(t *testing.T) {
	if n := (Size{Cohorts: 5, QueuesPerCohort: 6, Share: 1}).Runs(); n != 15000 {
		t.Errorf("%d Runs, want 15000", n)
	}
}
