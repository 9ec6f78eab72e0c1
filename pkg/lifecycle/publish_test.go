package lifecycle

import (
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// TestWhatIsMissingInScope says how many GPUs are free there where the refusal for room that follows counts others as
// missing.
func TestWhatIsMissingInScope(t *testing.T) {
	for name, c := range map[string]struct {
		free, deficit, short int
		reason               plan.Reason
		want                 string
	}{
		"nothing":  {16, 0, 8, plan.InsufficientGPUs, ""},
		"the same": {14, 18, 18, plan.InsufficientGPUs, "cluster short by 18 GPUs in scope: "},
		"one":      {31, 1, 1, plan.InsufficientGPUs, "cluster short by 1 GPU in scope: "},
		"others fit no pod": {14, 18, 20, plan.NoRoomWhereFunded,
			"cluster short by 18 GPUs in scope, where 14 are free: "},
		"there is room outside": {0, 16, 8, plan.InsufficientGPUs, "cluster short by 16 GPUs in scope, where 0 are free: "},
		"one is free":           {1, 7, 8, plan.InsufficientGPUs, "cluster short by 7 GPUs in scope, where 1 is free: "},
		"it is money":           {14, 18, 8, plan.InsufficientBudget, "cluster short by 18 GPUs in scope: "},
		"none are counted":      {14, 18, 0, plan.NotYet, "cluster short by 18 GPUs in scope: "},
	} {
		p := &forecast.Promise{Slice: forecast.Slice{Wants: c.free + c.deficit, Free: c.free, Deficit: c.deficit}}
		if got := inScope(p, &plan.Refusal{Reason: c.reason, ShortGPUs: c.short}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWhatIsToBeFreeInScope: a promise of a later date counts who has come and gone by then, and what is free lies
// badly where as much would do.
func TestWhatWillBeFreeInScope(t *testing.T) {
	refusal := &plan.Refusal{Reason: plan.InsufficientGPUs, ShortGPUs: 8}
	for name, c := range map[string]struct {
		slice forecast.Slice
		want  string
	}{
		"at the date": {forecast.Slice{Wants: 16, Deficit: 16, Then: true},
			"cluster short by 16 GPUs in scope, where 0 are to be free by then: "},
		"one, at the date": {forecast.Slice{Wants: 16, Free: 1, Deficit: 15, Then: true},
			"cluster short by 15 GPUs in scope, where 1 is to be free by then: "},
		"in pieces": {forecast.Slice{Wants: 16, Free: 20, Deficit: 4}, "cluster short by 4 GPUs in scope: "},
	} {
		if got := inScope(&forecast.Promise{Slice: c.slice}, refusal); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
