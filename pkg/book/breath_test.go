package book_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// held lists the open Leases of a Run, with who pays for each.
func (w *world) held(run string) []string {
	var out []string
	for _, lease := range w.OpenLeases() {
		if lease.Spec.RunRef.Name == run {
			out = append(out, lease.Name+" paid by "+lease.Spec.Payer.Budget)
		}
	}
	slices.Sort(out)
	return out
}

// TestGrowthAndShrinkAreInverse lets a Run grow as far as room and money go and shrink again, twice: its width is
// always on a step, what it holds is always paid for, and afterwards the ledger is as it was.
func TestGrowthAndShrinkAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.fleet("d0", rapid.IntRange(1, 4).Draw(t, "nodes of d0"))
		w.fleet("d1", rapid.IntRange(1, 4).Draw(t, "nodes of d1"))
		caps := map[string]int{"a": rapid.IntRange(8, 64).Draw(t, "budget"),
			"p": rapid.IntRange(1, 64).Draw(t, "budget of the family")}
		w.setBudget("a", "org:a", caps["a"])
		w.setBudget("p", "org", caps["p"])
		least, step := rapid.IntRange(1, 2).Draw(t, "least"), rapid.IntRange(1, 2).Draw(t, "step")
		spares := rapid.IntRange(0, 1).Draw(t, "spares")
		w.submitWithSpares("run0", "org:a", least+step, 1, rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "size"), spares,
			elastic(least, step), upTo(rapid.IntRange(0, 3).Draw(t, "steps above the total")))
		m := w.Runs["run0"].Spec.Malleable
		w.desire("run0", m.MinTotalGPUs)
		w.settle()
		before := w.held("run0")
		for range 2 {
			for _, desired := range []int32{m.MaxTotalGPUs, m.MinTotalGPUs} {
				w.Pass(time.Hour)
				w.desire("run0", desired)
				w.settle()
				w.check()
				w.checkSettled()
				for payer, gpus := range w.ledgerUsage() {
					if gpus > caps[payer.Budget] {
						w.t.Fatalf("I3: %s pays for %d GPUs of %d", payer.Budget, gpus, caps[payer.Budget])
					}
				}
			}
			if w.Runs["run0"].Status.Phase != rqv1.RunRunning {
				before = nil // it does not fit at all
			}
			if diff := cmp.Diff(before, w.held("run0")); diff != "" {
				w.t.Fatalf("the ledger is not as it was (-before +after):\n%s", diff)
			}
		}
	})
}
