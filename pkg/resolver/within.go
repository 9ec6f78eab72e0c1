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

// within keeps what the published conflict set says may be cut, and the priorities that it says. Spares that it does
// not list go with their steps, and they and steps that it does not list with the rest of their Run.
func within(candidates []Candidate, published []rqv1.Conflict) []Candidate {
	listed, priority := map[entryKey]bool{}, map[rqv1.NamespacedName]*int32{}
	for _, c := range published {
		listed[entryKey{c.Run, c.Action}] = true
		if c.Action == rqv1.CutLottery {
			priority[c.Run] = c.Priority
		}
	}
	var kept []Candidate
	for _, t := range candidates {
		t.Rest, t.Priority = slices.Clone(t.Rest), priority[t.Run]
		if !listed[entryKey{t.Run, rqv1.CutDropSpare}] {
			t.Steps = withSpares(&t)
			for _, s := range t.Spares {
				t.Rest = append(t.Rest, s.Holds...)
			}
			t.Spares = nil
		}
		returns := listed[entryKey{t.Run, rqv1.CutReturn}]
		var steps []Step
		for _, s := range t.Steps {
			s.Loan = s.Loan && returns // it is an elastic step as any other
			if listed[entryKey{t.Run, s.action()}] {
				steps = append(steps, s)
			} else {
				t.Rest = append(t.Rest, s.Holds...)
			}
		}
		t.Steps = steps
		t.Ticket = t.Ticket && listed[entryKey{t.Run, rqv1.CutLottery}]
		kept = append(kept, t)
	}
	return kept
}

// Loans leaves candidates what they have on loan, with the spares that go with it (R23), and drops those who have
// nothing.
func Loans(candidates []Candidate) []Candidate {
	var returned []rqv1.Conflict
	for i := range candidates {
		returned = append(returned, rqv1.Conflict{Run: candidates[i].Run, Action: rqv1.CutReturn})
	}
	var out []Candidate
	for _, t := range within(candidates, returned) {
		t.Rest = nil
		if len(t.Steps) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// OnLoan reports whether a conflict set lists nothing but what is on loan: nobody is cut then.
func OnLoan(published []rqv1.Conflict) bool {
	return len(published) > 0 && !slices.ContainsFunc(published, func(c rqv1.Conflict) bool { return c.Action.Cuts() })
}

// Cuts reports whether anybody loses something of its own by what an activation takes.
func Cuts(taken []rqv1.Cut) bool {
	return slices.ContainsFunc(taken, func(c rqv1.Cut) bool { return c.Action.Cuts() })
}

// Returns reports whether nobody is cut by an activation: it is on loan what it may take, by its conflict set, or what
// it takes.
func Returns(conflicts []rqv1.Conflict, taken []rqv1.Cut) bool {
	return OnLoan(conflicts) || len(taken) > 0 && !Cuts(taken)
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
