package budget

import (
	"cmp"
	"slices"
	"sort"
)

// nest is how the limits of a cover lie over its offers. Limits that several offers share form a tree; those that cut
// across it are crossing.
type nest struct {
	members  [][]int // offers by limit
	tree     []int   // shared limits, the wider ones first
	parent   []int   // of each in the tree: the place of the narrowest wider one, -1 for none
	over     []int   // by offer: the place of the narrowest in the tree, -1 for none
	crossing []int
}

// nested works out how the limits lie, once a cover.
func (c *Cover) nested() *nest {
	if c.nest != nil {
		return c.nest
	}
	t := &nest{members: make([][]int, len(c.limits)), over: make([]int, len(c.Offers))}
	for i := range c.Offers {
		t.over[i] = -1
		for _, l := range c.Offers[i].limits {
			t.members[l] = append(t.members[l], i)
		}
	}
	var shared []int
	for l := range t.members {
		if len(t.members[l]) > 1 {
			shared = append(shared, l)
		}
	}
	slices.SortStableFunc(shared, func(x, y int) int { return cmp.Compare(len(t.members[y]), len(t.members[x])) })
	for _, l := range shared {
		t.add(l)
	}
	c.nest = t
	return t
}

// add puts a limit into the tree, or among those that cut across it. No limit in the tree is narrower.
func (t *nest) add(l int) {
	parent := -1
	for place, wider := range t.tree {
		common := 0
		for _, offer := range t.members[l] {
			if _, found := slices.BinarySearch(t.members[wider], offer); found {
				common++
			}
		}
		switch common {
		case 0:
		case len(t.members[l]):
			parent = place
		default:
			t.crossing = append(t.crossing, l)
			return
		}
	}
	for _, offer := range t.members[l] {
		t.over[offer] = len(t.tree)
	}
	t.tree, t.parent = append(t.tree, l), append(t.parent, parent)
}

// payment is who pays for what.
type payment struct {
	paid []int   // by offer
	sent [][]int // by class and offer
}

// exact finds the payment that is first in R2's order among those that pay for all demand: where the greedy flow, which
// never has an earlier offer pay less for the sake of a later one, finds none. Limits that form a tree are part of a
// network, and whatever they allow is found. Those that cut across are met by branching, in a bounded number of steps.
type exact struct {
	*nest
	classes [][]int
	demand  []int
	pods    []int // by limit
	steps   int
	best    *payment
}

// exactSteps bounds the networks that one search solves.
const exactSteps = 200

// exactly returns the best payment for some demand, or nil.
func (c *Cover) exactly(classes [][]int, demand []int, p price) *payment {
	x := &exact{nest: c.nested(), classes: classes, demand: demand, pods: c.residuals(p), steps: exactSteps}
	x.branch(c.bounds(x.pods))
	return x.best
}

// bounds returns how many pods each offer could pay for by itself, given how many each limit lets in.
func (c *Cover) bounds(pods []int) []int {
	bound := make([]int, len(c.Offers))
	for i := range c.Offers {
		for at, l := range c.Offers[i].limits {
			if at == 0 || pods[l] < bound[i] {
				bound[i] = pods[l]
			}
		}
	}
	return bound
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
	for _, l := range x.crossing {
		excess, payers := -x.pods[l], 0
		for _, offer := range x.members[l] {
			excess += s.paid[offer]
			payers += min(1, s.paid[offer])
		}
		if excess <= 0 {
			continue
		}
		less := (excess + payers - 1) / payers // one of them pays less by its share, or all together pay too much
		for _, offer := range slices.Backward(x.members[l]) {
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
	limits, offers, classes := 1, 1+len(x.tree), 1+len(x.tree)+len(bound)
	sink := classes + len(x.demand)
	n := newNetwork(sink + 1)
	for place, l := range x.tree {
		n.join(limits+x.parent[place], limits+place, x.pods[l])
	}
	entries := make([]int, len(bound))
	for offer := range bound {
		entries[offer] = n.join(limits+x.over[offer], offers+offer, bound[offer])
	}
	pays := make([][]int, len(x.demand))
	total := 0
	for class, demand := range x.demand {
		for _, offer := range x.classes[class] {
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
		for i, offer := range x.classes[class] {
			s.sent[class][offer] = n.sent(pays[class][i])
		}
	}
	return s
}

// raise has an arc carry as much as it can without changing the whole, fixes it, and returns how much that is.
func (n *network) raise(i int) int {
	sent, room := n.sent(i), n.arcs[i].left
	from, to := n.arcs[i^1].to, n.arcs[i].to
	n.arcs[i].left, n.arcs[i^1].left = 0, 0
	for {
		more := n.push(to, from, room)
		if more == 0 {
			break
		}
		sent, room = sent+more, room-more
	}
	return sent
}

// most returns the largest demand of one class that every offer pays for which can be met, from one that can.
func (c *Cover) most(least int, p price) int {
	var all []int
	more := 0
	for i, bound := range c.bounds(c.residuals(p)) {
		all = append(all, i)
		more += bound
	}
	return least + sort.Search(more, func(n int) bool { return c.exactly([][]int{all}, []int{least + n + 1}, p) == nil })
}
