package payflow

import (
	"cmp"
	"slices"
)

// tree is how limits lie over offers. Limits that several offers share form a laminar family, a tree, as far as each
// lies wholly within another or apart from it; the others are crossing.
type tree struct {
	members   [][]int // offers by limit
	limits    []int   // those in the tree, the wider ones first
	parent    []int   // of each in the tree: the place of the narrowest wider one, -1 for none
	narrowest []int   // by offer: the place of the narrowest limit in the tree over it, -1 for none
	crossing  []int
}

// laminar works out how the limits lie, once.
func (p *Payers) laminar() *tree {
	if p.tree != nil {
		return p.tree
	}
	t := &tree{members: make([][]int, p.limits), narrowest: make([]int, len(p.offers))}
	for offer, limits := range p.offers {
		t.narrowest[offer] = -1
		for _, l := range limits {
			t.members[l] = append(t.members[l], offer)
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
	p.tree = t
	return t
}

// add puts a limit into the tree, or among those that cut across it. No limit in the tree is narrower.
func (t *tree) add(l int) {
	parent := -1
	for place, wider := range t.limits {
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
		t.narrowest[offer] = len(t.limits)
	}
	t.limits, t.parent = append(t.limits, l), append(t.parent, parent)
}
