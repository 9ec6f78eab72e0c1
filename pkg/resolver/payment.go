package resolver

import (
	"cmp"
	"slices"
	"sort"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// pay has tickets that are cut be paid by others instead: by Runs of the same owner that have tickets and a lower
// priority (R44). They are taken in the order of drawing, once all that is cut is known: neither who is drawn depends
// on priorities, nor what anybody else loses. It returns who pays, by the ticket.
func (t *simulation) pay(drawn []int) map[int][]int {
	var paid map[int][]int
	asks := t.asks
	for _, p := range drawn {
		if !t.chosen.has(p) {
			continue
		}
		if by := t.payFor(p); len(by) > 0 {
			if paid == nil {
				paid = map[int][]int{}
			}
			paid[p] = by
		}
	}
	t.asks = asks // how odds are worked out must not depend on priorities
	return paid
}

// payFor has others pay for a ticket, if the Run that waits fits with them in its place and without any of them, or of
// what else is cut, it would not. What the ticket's Run has given up besides it gets back as far as it can.
func (t *simulation) payFor(p int) []int {
	order := t.payers(p)
	if len(order) == 0 {
		return nil
	}
	before := slices.Clone(t.chosen)
	fitsWith := func(payers []int) bool {
		t.chosen = slices.Clone(before)
		t.chosen.remove(p)
		for _, q := range payers {
			t.chosen.add(t.of[t.units[q].candidate]...) // all that they hold goes with them
		}
		return t.fits()
	}
	if fitsWith(order) {
		n := sort.Search(len(order), func(n int) bool { return fitsWith(order[:n]) })
		paid := slices.Clone(order[:n])
		for i := range slices.Backward(paid) {
			if fewer := slices.Delete(slices.Clone(paid), i, i+1); fitsWith(fewer) {
				paid = fewer
			}
		}
		fitsWith(paid)
		t.putBackUnneededOf(t.units[p].candidate)
		if !t.spareable(paid) {
			return paid
		}
	}
	t.chosen = before
	return nil
}

// payers returns the tickets that could pay for one, in the order in which they would: the lowest priority first, of
// one priority the youngest.
func (t *simulation) payers(p int) []int {
	own := &t.candidates[t.units[p].candidate]
	if own.Priority == nil {
		return nil
	}
	var order []int
	for q, unit := range t.units {
		other := &t.candidates[unit.candidate]
		if unit.action == rqv1.CutLottery && !t.chosen.has(q) && sameOwner(other.Owner, own.Owner) &&
			other.Priority != nil && *other.Priority < *own.Priority {
			order = append(order, q)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &t.candidates[t.units[a].candidate], &t.candidates[t.units[b].candidate]
		return cmp.Or(cmp.Compare(*x.Priority, *y.Priority), y.Started.Compare(x.Started), byName(x.Run, y.Run))
	})
	return order
}

// putBackUnneededOf gives a Run back what it need not give up: its steps, then its spares.
func (t *simulation) putBackUnneededOf(candidate int) {
	for last, ok := t.lastStep(candidate); ok && t.putBack(last); last, ok = t.lastStep(candidate) {
		continue
	}
	for _, p := range t.of[candidate] {
		if t.units[p].action == rqv1.CutDropSpare && t.chosen.has(p) {
			t.putBack(p)
		}
	}
}

// spareable reports whether something is cut, beside some units, without which the Run that waits would fit as well.
func (t *simulation) spareable(beside []int) bool {
	for p := range t.units {
		unit := &t.units[p]
		switch {
		case !t.chosen.has(p) || slices.Contains(beside, p):
			continue
		case unit.action != rqv1.CutLottery && t.endsAll(unit.candidate):
			continue // it goes with its Run
		case unit.action.Narrows():
			if last, ok := t.lastStep(unit.candidate); !ok || last != p {
				continue
			}
		case unit.action == rqv1.CutDropSpare && t.goesWithStep(p):
			continue
		}
		if t.putBack(p) {
			return true
		}
	}
	return false
}

// goesWithStep reports whether a spare goes with a step that is given up.
func (t *simulation) goesWithStep(spare int) bool {
	for step, spares := range t.goesWith {
		if t.chosen.has(step) && slices.Contains(spares, spare) {
			return true
		}
	}
	return false
}

// record returns draws as a Reservation records them, with those who pay.
func (t *simulation) record(draws []Ticket, paid map[int][]int) []rqv1.Draw {
	out := make([]rqv1.Draw, len(draws))
	for i, ticket := range draws {
		out[i] = rqv1.Draw{Owner: ticket.Owner, Run: ticket.Run}
		p, ok := t.unitOf[ticket.Run]
		if !ok {
			continue
		}
		for _, q := range paid[p] {
			out[i].PaidBy = append(out[i].PaidBy, t.candidates[t.units[q].candidate].Run)
		}
		slices.SortFunc(out[i].PaidBy, byName)
	}
	return out
}

// ranked returns the candidates whose priorities may decide who pays: those of owners that have tickets of different
// ones. All others have none, and their records name none.
func ranked(candidates []Candidate) []Candidate {
	type span struct{ least, most int32 }
	spans := map[string]span{}
	for i := range candidates {
		c := &candidates[i]
		if !c.draws() || c.Priority == nil {
			continue
		}
		s, ok := spans[ownerKey(c.Owner)]
		if !ok {
			s = span{*c.Priority, *c.Priority}
		}
		spans[ownerKey(c.Owner)] = span{min(s.least, *c.Priority), max(s.most, *c.Priority)}
	}
	for i := range candidates {
		c := &candidates[i]
		if s := spans[ownerKey(c.Owner)]; !c.draws() || s.least == s.most {
			c.Priority = nil
		}
	}
	return candidates
}
