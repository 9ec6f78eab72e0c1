package resolver

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// claim is one action on one Run: what an entry of the conflict set is about.
type claim struct {
	run    rqv1.NamespacedName
	action rqv1.CutAction
}

// within keeps what the published conflict set says may be cut. Spares that it does not list go with their steps, and
// they and steps that it does not list with the rest of their Run.
func within(tenants []Tenant, published []rqv1.Conflict) []Tenant {
	listed := map[claim]bool{}
	for _, c := range published {
		listed[claim{c.Run, c.Action}] = true
	}
	var kept []Tenant
	for _, t := range tenants {
		t.Rest = slices.Clone(t.Rest)
		if !listed[claim{t.Run, rqv1.CutDropSpare}] {
			t.Steps = withSpares(&t)
			for _, s := range t.Spares {
				t.Rest = append(t.Rest, s.Holds...)
			}
			t.Spares = nil
		}
		if !listed[claim{t.Run, rqv1.CutShrink}] {
			for _, s := range t.Steps {
				t.Rest = append(t.Rest, s.Holds...)
			}
			t.Steps = nil
		}
		t.Ticket = t.Ticket && listed[claim{t.Run, rqv1.CutLottery}]
		kept = append(kept, t)
	}
	return kept
}

// withSpares returns the steps of a tenant with what their spares hold, and leaves it the other spares.
func withSpares(t *Tenant) []Step {
	steps := slices.Clone(t.Steps)
	left := slices.Clone(t.Spares)
	for i := range steps {
		steps[i].Holds = slices.Clone(steps[i].Holds)
		left = slices.DeleteFunc(left, func(s Spare) bool {
			goes := slices.Contains(steps[i].Spares, s.Index)
			if goes {
				steps[i].Holds = append(steps[i].Holds, s.Holds...)
			}
			return goes
		})
	}
	t.Spares = left
	return steps
}
