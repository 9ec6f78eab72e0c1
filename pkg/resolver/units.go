package resolver

import (
	"cmp"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// unit is the least that can be cut by itself: a spare, a step, or what a ticket ends.
type unit struct {
	action    rqv1.CutAction
	candidate int // index
	index     int // index of the spare or step in its candidate
	holds     []Holding
	gpus      int
}

// unitsOf lists all that may be cut, in the order of R19, after what is on loan. The tickets come last, in no order:
// they are drawn.
func unitsOf(candidates []Candidate) []unit {
	var all []unit
	add := func(action rqv1.CutAction, candidate, part int, holds []Holding) {
		all = append(all, unit{action, candidate, part, holds, gpus(holds)})
	}
	for _, s := range stepOrder(candidates, true) {
		add(rqv1.CutReturn, s.candidate, s.index, candidates[s.candidate].Steps[s.index].Holds)
	}
	for _, s := range spareOrder(candidates) {
		add(rqv1.CutDropSpare, s.candidate, s.index, candidates[s.candidate].Spares[s.index].Holds)
	}
	for _, s := range stepOrder(candidates, false) {
		add(rqv1.CutShrink, s.candidate, s.index, candidates[s.candidate].Steps[s.index].Holds)
	}
	for i := range candidates {
		if candidates[i].draws() {
			add(rqv1.CutLottery, i, 0, candidates[i].Rest)
		}
	}
	return all
}

// ref is a spare or a step of a candidate.
type ref struct{ candidate, index int }

// spareOrder drops spares by namespace and name of their Run, the highest index first.
func spareOrder(candidates []Candidate) []ref {
	var order []ref
	for i, t := range candidates {
		for s := range t.Spares {
			order = append(order, ref{i, s})
		}
	}
	slices.SortStableFunc(order, func(a, b ref) int {
		x, y := &candidates[a.candidate], &candidates[b.candidate]
		return cmp.Or(byName(x.Run, y.Run), cmp.Compare(y.Spares[b.index].Index, x.Spares[a.index].Index))
	})
	return order
}

// stepOrder gives up steps one at a time: of the candidates' next steps a borrowed one first, then one of the candidate
// with the most steps left, then by namespace and name. They are those that are on loan, or the others, which come
// after those.
func stepOrder(candidates []Candidate, loans bool) []ref {
	var order []ref
	next, end := make([]int, len(candidates)), make([]int, len(candidates))
	for i := range candidates {
		steps := candidates[i].Steps
		for end[i] < len(steps) && steps[end[i]].Loan {
			end[i]++
		}
		if !loans {
			next[i], end[i] = end[i], len(steps)
		}
	}
	for {
		best := -1
		for i := range candidates {
			if next[i] < end[i] && (best < 0 || stepsBefore(candidates, next, end, i, best)) {
				best = i
			}
		}
		if best < 0 {
			return order
		}
		order = append(order, ref{best, next[best]})
		next[best]++
	}
}

func stepsBefore(candidates []Candidate, next, end []int, a, b int) bool {
	x, y := &candidates[a], &candidates[b]
	if p, q := x.Steps[next[a]].Borrowed, y.Steps[next[b]].Borrowed; p != q {
		return p
	}
	return cmp.Or(cmp.Compare(end[b]-next[b], end[a]-next[a]), byName(x.Run, y.Run)) < 0
}
