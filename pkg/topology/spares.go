package topology

import (
	"cmp"
	"slices"
)

// spareBin is a bin with the spares that go to it: some of its nodes are set aside for them, away from the active pods
// (R12).
type spareBin struct {
	bin, took int
	room      int     // pods that fit on all of the bin's nodes
	nodes     []*node // all of them, part-used ones first
	eligible  []*node // those that no group's active pods are on already
	request   *Request
	// sums is the parent table of a subset sum: by a number of pods, the last of the eligible nodes that hold exactly so
	// many together, counted from 1; 0 where no choice of nodes does.
	sums   []int
	spares int // how many go there
}

// setAside decides how many spares of a solution have nodes of their own, and where: as many as can, all groups that
// share a domain taken together. Pods that may lie anywhere are taken together over all domains, the domains that hold
// most of them first. It returns a spareBin for every bin, or nil when there are no spares to place.
func (f *Fleet) setAside(r *Request, p *problem, took, home []int) []spareBin {
	if r.spares() == 0 {
		return nil
	}
	spareBins := make([]spareBin, len(p.bins))
	for s := range p.candidates {
		for l := p.candidates[s].lo; l < p.candidates[s].hi; l++ {
			spareBins[l] = spareBin{bin: l, took: took[l], request: r}
			if took[l] > 0 {
				f.listNodes(&spareBins[l], r, p, &p.candidates[s])
			}
		}
	}
	if !r.Confined && !r.OneDomain {
		splitSpares(spareBins, r.spares())
		return spareBins
	}
	for s := range p.candidates {
		spares := 0
		for i := range r.Groups {
			if home[i] == s {
				spares += r.Groups[i].Spares
			}
		}
		splitSpares(spareBins[p.candidates[s].lo:p.candidates[s].hi], spares)
	}
	return spareBins
}

// listNodes lists the nodes of a bin, and which of them may be set aside for spares.
func (f *Fleet) listNodes(st *spareBin, r *Request, p *problem, at *candidate) {
	beside := map[string]bool{}
	for i := range r.Groups {
		for _, name := range r.Groups[i].Beside {
			beside[name] = beside[name] || r.Groups[i].Spares > 0
		}
	}
	for _, of := range [...]func(*pool) freeList{func(p *pool) freeList { return p.used },
		func(p *pool) freeList { return p.empty }} {
		for _, nodes := range f.usableNodes(r, p, at.domain, p.bins[st.bin].class, nil, of) {
			st.nodes = append(st.nodes, nodes...)
			for _, n := range slices.Backward(nodes) { // the last of equal nodes: active pods have the first
				st.room += r.room(n)
				if !beside[n.Name] {
					st.eligible = append(st.eligible, n)
				}
			}
		}
	}
}

// splitSpares chooses by dynamic programming how many of the spares go to each of the bins: as many in all as can, and
// the most to the bins that take the most pods.
func splitSpares(spareBins []spareBin, spares int) {
	order := make([]*spareBin, len(spareBins))
	for i := range spareBins {
		order[i] = &spareBins[i]
		order[i].findSums(min(spares, spareBins[i].took))
	}
	slices.SortStableFunc(order, func(a, b *spareBin) int { return cmp.Compare(b.took, a.took) })
	// can[i][n] says that the bins from i on can take n spares together.
	can := make([][]bool, len(order)+1)
	for i := range can {
		can[i] = make([]bool, spares+1)
	}
	can[len(order)][0] = true
	for i := len(order) - 1; i >= 0; i-- {
		for n := 0; n <= min(spares, order[i].took); n++ {
			if _, ok := order[i].leastRoom(n); !ok {
				continue
			}
			for rest := 0; rest+n <= spares; rest++ {
				can[i][rest+n] = can[i][rest+n] || can[i+1][rest]
			}
		}
	}
	left := spares
	for !can[0][left] {
		left--
	}
	for i, st := range order {
		st.spares = min(left, st.took)
		for ; ; st.spares-- {
			if _, ok := st.leastRoom(st.spares); ok && can[i+1][left-st.spares] {
				break
			}
		}
		left -= st.spares
	}
}

// findSums solves the subset sum of the eligible nodes: which numbers of pods some choice of them holds exactly, as far
// as up to so many spares need to know.
func (st *spareBin) findSums(spares int) {
	largest := 0
	for _, n := range st.eligible {
		largest = max(largest, st.request.room(n))
	}
	st.sums = make([]int, spares+largest)
	for i, n := range st.eligible {
		each := st.request.room(n)
		for pods := len(st.sums) - 1; pods >= each; pods-- {
			if st.sums[pods] == 0 && (pods == each || st.sums[pods-each] > 0) {
				st.sums[pods] = i + 1
			}
		}
	}
}

// leastRoom is the smallest sum that holds so many spares, and whether the other nodes hold the rest of the pods.
func (st *spareBin) leastRoom(spares int) (pods int, ok bool) {
	if spares == 0 {
		return 0, true
	}
	for pods = spares; pods < len(st.sums); pods++ {
		if st.sums[pods] > 0 {
			return pods, st.room-pods >= st.took-spares
		}
	}
	return 0, false
}

// chosen is the nodes that are set aside.
func (st *spareBin) chosen() map[*node]bool {
	if st.spares == 0 {
		return nil
	}
	out := map[*node]bool{}
	pods, _ := st.leastRoom(st.spares)
	for pods > 0 {
		n := st.eligible[st.sums[pods]-1]
		out[n] = true
		pods -= st.request.room(n)
	}
	return out
}

// slots adds the places of the spares, on the nodes that are set aside.
func (st *spareBin) slots(out []nodeSlot) []nodeSlot {
	left, chosen := st.spares, st.chosen()
	for _, n := range st.eligible {
		for k := 0; chosen[n] && k < st.request.room(n) && left > 0; k++ {
			out = append(out, nodeSlot{node: n, class: n.pool.set.class})
			left--
		}
	}
	return out
}
