package payflow

import "slices"

// payment is who pays for what.
type payment struct {
	paid []int   // by offer
	sent [][]int // by class and offer
}

// exact finds the best payment for all demand: where the greedy flow, which never has an earlier offer pay less for the
// sake of a later one, finds none. Limits that form a tree are part of a network, and whatever they allow is found.
// Those that cut across are met by branch and bound.
type exact struct {
	tree   *tree
	payers [][]int
	demand []int
	room   []int // by limit
	steps  int
	best   *payment
}

// exactSteps bounds the networks that one search solves.
const exactSteps = 200

// exactly returns the best payment for some demand, or nil.
func (p *Payers) exactly(payers [][]int, demand, room []int) *payment {
	x := &exact{tree: p.laminar(), payers: payers, demand: demand, room: room, steps: exactSteps}
	x.branch(p.bounds(room))
	return x.best
}

// branch solves the network with a bound on every offer. If that breaks a limit that cuts across the tree, then one of
// its offers has to pay less.
func (x *exact) branch(bound []int) {
	x.steps--
	if x.steps < 0 {
		return
	}
	s := x.solve(bound)
	if s == nil || (x.best != nil && slices.Compare(s.paid, x.best.paid) <= 0) {
		return
	}
	for _, l := range x.tree.crossing {
		excess, paying := -x.room[l], 0
		for _, offer := range x.tree.members[l] {
			excess += s.paid[offer]
			paying += min(1, s.paid[offer])
		}
		if excess <= 0 {
			continue
		}
		less := (excess + paying - 1) / paying // one of them pays less by its share, or all together pay too much
		for _, offer := range slices.Backward(x.tree.members[l]) {
			if s.paid[offer] >= less {
				tighter := slices.Clone(bound)
				tighter[offer] = s.paid[offer] - less
				x.branch(tighter)
			}
		}
		return
	}
	x.best = s
}

// solve pays for all demand under the limits in the tree: as much as can be by the first offer, then by the second, and
// so on. It returns nil if that is not possible. Nodes are the root, the limits in the tree, offers, classes and the
// sink.
func (x *exact) solve(bound []int) *payment {
	limits, offers, classes := 1, 1+len(x.tree.limits), 1+len(x.tree.limits)+len(bound)
	sink := classes + len(x.demand)
	n := newNetwork(sink + 1)
	for place, l := range x.tree.limits {
		n.join(limits+x.tree.parent[place], limits+place, x.room[l])
	}
	entries := make([]int, len(bound))
	for offer := range bound {
		entries[offer] = n.join(limits+x.tree.narrowest[offer], offers+offer, bound[offer])
	}
	pays := make([][]int, len(x.demand))
	total := 0
	for class, demand := range x.demand {
		for _, offer := range x.payers[class] {
			pays[class] = append(pays[class], n.join(offers+offer, classes+class, demand))
		}
		n.join(classes+class, sink, demand)
		total += demand
	}
	for total > 0 {
		sent := n.push(0, sink, total)
		if sent == 0 {
			return nil
		}
		total -= sent
	}
	s := &payment{paid: make([]int, len(bound))}
	for offer, entry := range entries {
		s.paid[offer] = n.raise(entry)
	}
	for class := range pays {
		s.sent = append(s.sent, make([]int, len(bound)))
		for i, offer := range x.payers[class] {
			s.sent[class][offer] = n.sent(pays[class][i])
		}
	}
	return s
}
