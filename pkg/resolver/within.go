package resolver

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// entryKey is one action on one Run: what an entry of the conflict set is about.
type entryKey struct {
	run    rqv1.NamespacedName
	action rqv1.CutAction
}

// within keeps what the published conflict set says may be cut. Spares that it does not list go with their steps, and
// they and steps that it does not list with the rest of their Run.
func within(candidates []Candidate, published []rqv1.Conflict) []Candidate {
	listed := map[entryKey]bool{}
	for _, c := range published {
		listed[entryKey{c.Run, c.Action}] = true
	}
	var kept []Candidate
	for _, t := range candidates {
		t.Rest = slices.Clone(t.Rest)
		if !listed[entryKey{t.Run, rqv1.CutDropSpare}] {
			t.Steps = withSpares(&t)
			for _, s := range t.Spares {
				t.Rest = append(t.Rest, s.Holds...)
			}
			t.Spares = nil
		}
		if !listed[entryKey{t.Run, rqv1.CutShrink}] {
			for _, s := range t.Steps {
				t.Rest = append(t.Rest, s.Holds...)
			}
			t.Steps = nil
		}
		t.Ticket = t.Ticket && listed[entryKey{t.Run, rqv1.CutLottery}]
		kept = append(kept, t)
	}
	return kept
}

// withSpares returns the steps of a candidate with what their spares hold, and leaves it the other spares.
func withSpares(t *Candidate) []Step {
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
