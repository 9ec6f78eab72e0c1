package book_test

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestNoMorePodsThanGPUs: a Run that may be two thousand GPUs wide has no more pods than there are GPUs, and uses what
// comes later, as far as it can be paid for.
func TestNoMorePodsThanGPUs(t *testing.T) {
	for name, test := range map[string]struct {
		wide  []func(*rqv1.RunSpec)
		first int32 // pods before any has a place
		later int   // GPUs
	}{
		"a malleable Run":      {[]func(*rqv1.RunSpec){ungrouped, elastic(1, 1)}, 1, 20},
		"an opportunistic Run": {[]func(*rqv1.RunSpec){opportunistic}, 16, 24},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 2)
				w.setBudget("a", "org:a", 20)
				w.submitWithSpares("run0", "org:a", 1, 2000, 1, 0, test.wide...)
				w.reconcile("run0")
				if active, _ := w.countPods("run0"); active != test.first {
					w.t.Fatalf("%d pods are made in a fleet of 16 GPUs", active)
				}
				w.settle()
				before := len(w.held("run0"))
				w.crash()
				w.fleet("d1", 1)
				w.settle()
				if after := len(w.held("run0")); before != 16 || after != test.later {
					w.t.Fatalf("it held %d GPUs, and holds %d with one node more, not %d", before, after, test.later)
				}
				if active, _ := w.countPods("run0"); active > 24+24 {
					w.t.Fatalf("%d pods are made in a fleet of 24 GPUs", active)
				}
			})
		})
	}
}
