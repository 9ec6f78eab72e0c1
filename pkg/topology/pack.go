package topology

import "time"

// Pack finds a place for every pod of a request, or says why there is none. It changes nothing.
//
// Among the placements that fit it looks for the one that touches the fewest units of each level, widest level first;
// then the one whose domains had the fewest free GPUs; then the one that opens the fewest empty nodes (R12, R13). Ties
// break by name (R30). Small instances are solved exactly; in large ones the search ends after a fixed number of steps
// and the best placement so far counts.
//
// Nodes that pods would have to leave before an outage are used where there is no other way.
func (f *Fleet) Pack(r Request) (Placement, *Shortfall) {
	if r.pods() == 0 {
		return Placement{}, nil
	}
	placement, short := f.packBut(r, 0)
	if short != nil && f.anyAhead(&r) {
		return f.packBut(r, r.Leaves)
	}
	return placement, short
}

// packBut packs on nodes without an outage while the pods are there, but for what they leave in time.
func (f *Fleet) packBut(r Request, leaves time.Duration) (Placement, *Shortfall) {
	s := f.flavors[r.Flavor].within(r.Within)
	if s == nil {
		return Placement{}, f.unknownFlavor(&r)
	}
	r.fleet, r.asks = f, f.numbered(r.Beside)
	r.Excluded = f.shutOut(&r, leaves)
	p := f.layOut(&r, s)
	if best := p.solve(); best != nil {
		return f.slotsOf(&r, p, best), nil
	}
	return Placement{}, f.shortfall(&r, s, p)
}

// solution is how many pods go to each bin, and how many pieces of each size to each candidate.
type solution struct {
	took, put []int
	cost      cost
}

// solve returns nil when nothing was found.
func (p *problem) solve() *solution {
	if p.lost {
		return nil
	}
	d := newDraft(p)
	var best *solution
	if d.greedy() {
		best = &solution{took: append([]int(nil), d.took...), put: append([]int(nil), d.put...), cost: d.cost}
	}
	d.undo(0)
	return newSearch(d, best).run()
}
