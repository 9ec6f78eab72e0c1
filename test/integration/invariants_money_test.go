package integration

import (
	"fmt"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// overdrawn finds overdraft where no limit was ever edited (I3).
func (w *world) overdrawn() []string {
	var out []string
	for i := range w.budgets {
		if b := &w.budgets[i]; b.Status.OverdraftGPUs > 0 && w.constant() {
			out = append(out, fmt.Sprintf("I3: Budget %s has an overdraft of %d GPUs, and no limit has changed", b.Name,
				b.Status.OverdraftGPUs))
		}
	}
	return out
}

// constant tells whether what the Budgets allow has always been the same: they are as they were created, and neither
// time nor use takes anything away.
func (w *world) constant() bool {
	for i := range w.budgets {
		b := &w.budgets[i]
		if b.Generation > 1 || slices.ContainsFunc(b.Spec.Envelopes, func(e rqv1.Envelope) bool {
			return e.End != nil || e.MaxGPUHours != nil || e.Lending != nil && e.Lending.MaxGPUHours != nil
		}) || slices.ContainsFunc(b.Spec.AggregateCaps, func(c rqv1.AggregateCap) bool { return c.MaxGPUHours != nil }) {
			return false
		}
	}
	return true
}
