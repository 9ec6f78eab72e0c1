package budget

import (
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Edit is how far an edit of a Budget reaches.
type Edit int

const (
	// Relations may have changed: who pays for whom, and on which nodes.
	Relations Edit = iota
	// Amounts have changed, or windows: the same envelopes pay for the same Runs, more or less.
	Amounts
	// Hours: nothing but limits on GPU-hours has changed.
	Hours
)

// EditOf returns how far the edit reaches by which a Budget became another; of one that is new, it is nil before.
func EditOf(was, is *rqv1.Budget) Edit {
	switch {
	case was == nil || !reflect.DeepEqual(without(was, true), without(is, true)):
		return Relations
	case !reflect.DeepEqual(without(was, false), without(is, false)):
		return Amounts
	}
	return Hours
}

// without returns what a Budget says but for GPU-hours, and but for all amounts and windows.
func without(b *rqv1.Budget, amounts bool) *rqv1.BudgetSpec {
	s := b.Spec.DeepCopy()
	for i := range s.Envelopes {
		e := &s.Envelopes[i]
		e.MaxGPUHours = nil
		if e.Lending != nil {
			e.Lending.MaxGPUHours = nil
		}
		if !amounts {
			continue
		}
		e.Concurrency, e.Start, e.End = 0, nil, nil
		if e.Lending != nil {
			e.Lending.MaxConcurrency = nil
		}
	}
	for i := range s.AggregateCaps {
		c := &s.AggregateCaps[i]
		c.MaxGPUHours = nil
		if amounts {
			c.MaxConcurrency = nil
		}
	}
	return s
}

// Edged returns the Budgets, sorted, of which a window opens or closes after one instant and not after another.
func (a *Accounts) Edged(after, until time.Time) []string {
	var out []string
	for name, b := range a.budgets {
		if slices.ContainsFunc(b.Spec.Envelopes, func(e rqv1.Envelope) bool {
			return slices.ContainsFunc([]*metav1.Time{e.Start, e.End}, func(edge *metav1.Time) bool {
				return edge != nil && edge.After(after) && !edge.After(until)
			})
		}) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
