package book

import "github.com/davidlangworthy/jobtree/pkg/plan"

// WaitsFor is what a Run waits for that has been refused, and whether it has a date.
type WaitsFor struct {
	Reason  plan.Reason
	GPUType string
	Dated   bool
}

// Waiting counts the Runs that wait and have been told why.
func (b *Book) Waiting() map[WaitsFor]int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	out := map[WaitsFor]int{}
	for _, g := range b.waiting.gangs {
		if g.run != nil && g.refusal != nil {
			out[WaitsFor{g.refusal.Reason, g.run.Spec.Resources.GPUType, g.promise != nil}]++
		}
	}
	return out
}
