package topology

import (
	"cmp"
	"slices"
)

// stand is a lot that spares may stand on, away from the active pods: some of its nodes are set aside for them (R12).
type stand struct {
	lot, took int
	room      int     // pods that fit on all of the lot's nodes
	nodes     []*node // all of them, part-used ones first
	apart     []*node // those that no group's active pods are on already
	gpus      int     // of a pod
	// last is, by a number of pods, the last of the nodes of apart that hold exactly so many together, counted from 1; 0
	// where no choice of nodes does.
	last   []int
	spares int // how many stand there
}

// setAside decides how many spares of a solution stand on nodes of their own, and where: as many as can, all groups
// that share a domain taken together. Pods that may lie anywhere are taken together over all domains, of which those
// that hold most of them come first. It returns a stand for every lot, or nil when there are no spares to place.
func (f *Fleet) setAside(r *Request, p *problem, took, home []int) []stand {
	if r.spares() == 0 {
		return nil
	}
	stands := make([]stand, len(p.lots))
	for s := range p.sites {
		for l := p.sites[s].lo; l < p.sites[s].hi; l++ {
			stands[l] = stand{lot: l, took: took[l], gpus: p.gpus}
			if took[l] > 0 {
				f.survey(&stands[l], r, p, &p.sites[s])
			}
		}
	}
	if !r.Confined && !r.OneDomain {
		settle(stands, r.spares())
		return stands
	}
	for s := range p.sites {
		spares := 0
		for i := range r.Groups {
			if home[i] == s {
				spares += r.Groups[i].Spares
			}
		}
		settle(stands[p.sites[s].lo:p.sites[s].hi], spares)
	}
	return stands
}

// survey lists the nodes of a stand.
func (f *Fleet) survey(st *stand, r *Request, p *problem, at *site) {
	beside := map[string]bool{}
	for i := range r.Groups {
		for _, name := range r.Groups[i].Beside {
			beside[name] = beside[name] || r.Groups[i].Spares > 0
		}
	}
	for _, of := range [...]func(*pool) shelf{func(p *pool) shelf { return p.used },
		func(p *pool) shelf { return p.empty }} {
		for _, nodes := range f.usable(r, p, at.block, p.lots[st.lot].class, nil, of) {
			st.nodes = append(st.nodes, nodes...)
			for _, n := range slices.Backward(nodes) { // the last of equal nodes: active pods have the first
				st.room += n.free() / p.gpus
				if !beside[n.Name] {
					st.apart = append(st.apart, n)
				}
			}
		}
	}
}

// settle chooses how many of the spares stand on each of the lots: as many in all as can, and the most on the lots that
// take the most pods.
func settle(stands []stand, spares int) {
	order := make([]*stand, len(stands))
	for i := range stands {
		order[i] = &stands[i]
		order[i].fill(min(spares, stands[i].took))
	}
	slices.SortStableFunc(order, func(a, b *stand) int { return cmp.Compare(b.took, a.took) })
	// can[i][n]: the lots from i on can take n spares together.
	can := make([][]bool, len(order)+1)
	for i := range can {
		can[i] = make([]bool, spares+1)
	}
	can[len(order)][0] = true
	for i := len(order) - 1; i >= 0; i-- {
		for n := 0; n <= min(spares, order[i].took); n++ {
			if _, ok := order[i].least(n); !ok {
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
			if _, ok := st.least(st.spares); ok && can[i+1][left-st.spares] {
				break
			}
		}
		left -= st.spares
	}
}

// fill finds which numbers of pods some choice of nodes holds exactly, as far as up to so many spares need to know.
func (st *stand) fill(spares int) {
	largest := 0
	for _, n := range st.apart {
		largest = max(largest, n.free()/st.gpus)
	}
	st.last = make([]int, spares+largest)
	for i, n := range st.apart {
		each := n.free() / st.gpus
		for pods := len(st.last) - 1; pods >= each; pods-- {
			if st.last[pods] == 0 && (pods == each || st.last[pods-each] > 0) {
				st.last[pods] = i + 1
			}
		}
	}
}

// least is the smallest room of nodes that hold so many spares, and whether the other nodes hold the rest of the pods.
func (st *stand) least(spares int) (pods int, ok bool) {
	if spares == 0 {
		return 0, true
	}
	for pods = spares; pods < len(st.last); pods++ {
		if st.last[pods] > 0 {
			return pods, st.room-pods >= st.took-spares
		}
	}
	return 0, false
}

// chosen is the nodes that are set aside.
func (st *stand) chosen() map[*node]bool {
	if st.spares == 0 {
		return nil
	}
	out := map[*node]bool{}
	pods, _ := st.least(st.spares)
	for pods > 0 {
		n := st.apart[st.last[pods]-1]
		out[n] = true
		pods -= n.free() / st.gpus
	}
	return out
}

// board gives the spares their berths.
func (st *stand) board(out []berth, gpus int) []berth {
	left, chosen := st.spares, st.chosen()
	for _, n := range st.apart {
		for k := 0; chosen[n] && k < n.free()/gpus && left > 0; k++ {
			out = append(out, berth{node: n, class: n.pool.set.class})
			left--
		}
	}
	return out
}
