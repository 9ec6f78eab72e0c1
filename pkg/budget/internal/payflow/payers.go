package payflow

import (
	"slices"
	"sort"
)

// Unbounded is more pods than there can be.
const Unbounded = 1 << 40

// Payers are the offers of one question and the limits over them. They keep their arrays between calls, since they are
// asked many times.
type Payers struct {
	offers [][]int // by offer, the limits over it
	limits int
	flow   flow
	tree   *tree // nil until it is needed
}

// New returns offers with the limits over each, by index from 0; an offer without limits pays for nothing.
func New(limits int, offers [][]int) *Payers { return &Payers{offers: offers, limits: limits} }

// Share returns how many pods of each class each offer pays for; false when not all can be paid for. payers are the
// offers that pay for a class, in order, demand is how many pods each class has, and room how many pods each limit lets
// in. The answer is valid until the next call, and its caller may change it.
func (p *Payers) Share(payers [][]int, demand, room []int) ([][]int, bool) {
	if p.fill(payers, demand, room) {
		return p.flow.sent[:len(demand)], true
	}
	if p.short(payers, demand, room) {
		return nil, false
	}
	best := p.exactly(payers, demand, room)
	if best == nil {
		return nil, false
	}
	return best.sent, true
}

// Total returns how many pods the offers could pay for together if each paid for all classes.
func (p *Payers) Total(room []int) int {
	total, left := 0, slices.Clone(room)
	for offer := range p.offers {
		total += p.Take(offer, Unbounded, left)
	}
	if len(p.laminar().crossing) == 0 {
		return total
	}
	var all []int
	more := 0
	for i, bound := range p.bounds(room) {
		all = append(all, i)
		more += bound
	}
	return total + sort.Search(more, func(n int) bool {
		return p.exactly([][]int{all}, []int{total + n + 1}, room) == nil
	})
}

// Take uses up to n pods of the limits over an offer, and returns how many they let in.
func (p *Payers) Take(offer, n int, room []int) int {
	if len(p.offers[offer]) == 0 {
		return 0
	}
	for _, l := range p.offers[offer] {
		n = min(n, room[l])
	}
	for _, l := range p.offers[offer] {
		room[l] -= n
	}
	return n
}

// bounds returns how many pods each offer could pay for by itself.
func (p *Payers) bounds(room []int) []int {
	bound := make([]int, len(p.offers))
	for i, limits := range p.offers {
		for at, l := range limits {
			if at == 0 || room[l] < bound[i] {
				bound[i] = room[l]
			}
		}
	}
	return bound
}

// short reports whether demand that the greedy flow did not meet cannot be met: because no two offers share a limit, or
// because all that pay for the classes concerned, or for any, pay for too little together.
func (p *Payers) short(payers [][]int, demand, room []int) bool {
	t := p.laminar()
	if len(t.crossing) > 0 {
		return false
	}
	for _, all := range []bool{false, true} {
		left := slices.Clone(room)
		wanted := 0
		for class := range demand {
			if !all && p.flow.unmet[class] == 0 {
				continue
			}
			wanted += demand[class]
			for _, offer := range payers[class] {
				wanted -= p.Take(offer, Unbounded, left) // nothing is left for a second class
			}
		}
		if wanted > 0 {
			return true
		}
	}
	return len(t.limits) == 0
}
