package topology

import (
	"slices"
	"strings"
)

// The reference knows the rules and nothing of the packer: it walks every way to give pods to nodes, node by node, and
// keeps the best tuple. It works on the nodes as the test states them.

type refNode struct {
	name   string
	path   []string // level values, widest first
	fits   int      // pods
	free   int      // GPUs
	held   bool
	class  int
	usable bool
}

// refCost is the tuple of the objective: units touched by level, then free GPUs of the touched domains, then empty
// nodes opened.
type refCost []int

type reference struct {
	nodes   []refNode // grouped by domain
	bound   map[string]int
	sizes   []int // of the pieces that choose their domain
	covers  func(demand []int) bool
	demand  []int
	best    refCost
	classes int
	levels  int
}

// solve walks the domains; for each it chooses which pieces lie there, and then how many pods go to each node.
func (r *reference) solve() refCost {
	r.demand = make([]int, r.classes)
	r.domains(0, make([]bool, len(r.sizes)), nil, 0, 0)
	return r.best
}

func (r *reference) domains(from int, placed []bool, touched []string, free, opened int) {
	if from == len(r.nodes) {
		if !slices.Contains(placed, false) {
			r.judge(touched, free, opened)
		}
		return
	}
	to := from
	for to < len(r.nodes) && slices.Equal(r.nodes[to].path, r.nodes[from].path) {
		to++
	}
	r.subsets(from, to, 0, placed, r.bound[strings.Join(r.nodes[from].path, "/")], touched, free, opened)
}

// subsets chooses the pieces from number i on that lie in the domain of nodes [from,to).
func (r *reference) subsets(from, to, i int, placed []bool, pods int, touched []string, free, opened int) {
	if i == len(placed) {
		if pods > 0 {
			touched = append(slices.Clone(touched), strings.Join(r.nodes[from].path, "/"))
			for _, n := range r.nodes[from:to] {
				free += n.free
			}
		}
		r.spread(from, to, pods, func(more int) { r.domains(to, placed, touched, free, opened+more) })
		return
	}
	r.subsets(from, to, i+1, placed, pods, touched, free, opened)
	// Of equal pieces, those with the lower numbers go to the earlier domains.
	earlier := i > 0 && r.sizes[i-1] == r.sizes[i] && !placed[i-1]
	if !placed[i] && !earlier {
		placed[i] = true
		r.subsets(from, to, i+1, placed, pods+r.sizes[i], touched, free, opened)
		placed[i] = false
	}
}

// spread gives pods to the nodes [n,to) in every way that can be paid for.
func (r *reference) spread(n, to, pods int, then func(opened int)) {
	if n == to {
		if pods == 0 && r.covers(r.demand) {
			then(0)
		}
		return
	}
	node := r.nodes[n]
	for k := 0; k <= min(node.fits, pods); k++ {
		if k > 0 && (!node.usable || node.class < 0) {
			return
		}
		opens := 0
		if k > 0 {
			r.demand[node.class] += k
			if !node.held {
				opens = 1
			}
		}
		r.spread(n+1, to, pods-k, func(more int) { then(more + opens) })
		if k > 0 {
			r.demand[node.class] -= k
		}
	}
}

func (r *reference) judge(touched []string, free, opened int) {
	cost := append(unitCounts(touched, r.levels), free, opened)
	if r.best == nil || slices.Compare(cost, r.best) < 0 {
		r.best = cost
	}
}

// unitCounts is how many different units of each level the domain keys lie in.
func unitCounts(keys []string, levels int) []int {
	counts := make([]int, levels)
	for l := range counts {
		seen := map[string]bool{}
		for _, key := range keys {
			seen[strings.Join(strings.Split(key, "/")[:l+1], "/")] = true
		}
		counts[l] = len(seen)
	}
	return counts
}
