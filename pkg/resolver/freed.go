package resolver

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Freed returns what cuts free of what their candidates hold in scope (R19).
func Freed(cuts []rqv1.Cut, candidates []Candidate) []Holding {
	var out []Holding
	for _, c := range cuts {
		at := slices.IndexFunc(candidates, func(t Candidate) bool { return t.Run == c.Run })
		candidate := &candidates[at]
		c.Spares = slices.Clone(c.Spares)
		returns := slices.ContainsFunc(cuts, func(o rqv1.Cut) bool { return o.Run == c.Run && o.Action == rqv1.CutReturn })
		for _, step := range candidate.Steps {
			step.Loan = step.Loan && returns // else it is given up as any other
			if c.Action == rqv1.CutLottery || c.Action == step.action() && c.Width != nil && step.Width >= int(*c.Width) {
				out = append(out, step.Holds...)
				for _, spare := range step.Spares {
					c.Spares = append(c.Spares, int32(spare))
				}
			}
		}
		for _, spare := range candidate.Spares {
			if c.Action == rqv1.CutLottery || slices.Contains(c.Spares, int32(spare.Index)) {
				out = append(out, spare.Holds...)
			}
		}
		if c.Action == rqv1.CutLottery {
			out = append(out, candidate.Rest...)
		}
	}
	return out
}

// AtRisk returns what the candidates in a conflict set hold of what may be cut. Spares and steps that it does not list
// go with their Run.
func AtRisk(conflicts []rqv1.Conflict, candidates []Candidate) []Holding {
	listed := map[rqv1.NamespacedName][]rqv1.CutAction{}
	for i := range conflicts {
		if c := &conflicts[i]; c.Probability != "0" {
			listed[c.Run] = append(listed[c.Run], c.Action)
		}
	}
	var out []Holding
	for i := range candidates {
		candidate := &candidates[i]
		actions := listed[candidate.Run]
		ends := slices.Contains(actions, rqv1.CutLottery)
		var with []int // spares that go with steps
		for _, step := range candidate.Steps {
			if ends || slices.Contains(actions, rqv1.CutShrink) || step.Loan && slices.Contains(actions, rqv1.CutReturn) {
				out = append(out, step.Holds...)
				with = append(with, step.Spares...)
			}
		}
		for _, spare := range candidate.Spares {
			if ends || slices.Contains(actions, rqv1.CutDropSpare) || slices.Contains(with, spare.Index) {
				out = append(out, spare.Holds...)
			}
		}
		if ends {
			out = append(out, candidate.Rest...)
		}
	}
	return out
}
