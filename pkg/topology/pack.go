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
	placement, fits := f.Place(r)
	if fits {
		return placement, nil
	}
	leaves := time.Duration(0)
	if f.anyAhead(&r) {
		leaves = r.Leaves
	}
	s := f.flavors[r.Flavor].within(r.Within)
	if s == nil {
		return Placement{}, f.unknownFlavor(&r)
	}
	f.prepare(&r, leaves)
	return Placement{}, f.shortfall(&r, s, f.layOut(&r, s))
}

// Place is Pack for who does not want to know why there is no place.
func (f *Fleet) Place(r Request) (Placement, bool) {
	if r.pods() == 0 {
		return Placement{}, true
	}
	placement, fits := f.placeBut(r, 0)
	if !fits && f.anyAhead(&r) {
		return f.placeBut(r, r.Leaves)
	}
	return placement, fits
}

// placeBut places on nodes without an outage while the pods are there, but for what they leave in time.
func (f *Fleet) placeBut(r Request, leaves time.Duration) (Placement, bool) {
	s := f.flavors[r.Flavor].within(r.Within)
	if s == nil {
		return Placement{}, false
	}
	f.prepare(&r, leaves)
	p := f.layOut(&r, s)
	if best := p.solve(); best != nil {
		return f.slotsOf(&r, p, best), true
	}
	return Placement{}, false
}

// prepare has a request know what it asks of the fleet.
func (f *Fleet) prepare(r *Request, leaves time.Duration) {
	r.fleet, r.asks = f, f.numbered(r.Beside)
	r.Excluded = f.shutOut(r, leaves)
}

// solution is how many pods go to each bin, and how many pieces of each size to each candidate.
type solution struct {
	took, put []int
	cost      cost
}

// solve returns nil when nothing was found.
func (p *problem) solve() *solution {
	if p.lost || p.tooFew() {
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

// tooFew reports whether all candidates together have too little room.
func (p *problem) tooFew() bool {
	left := 0
	for i, size := range p.sizes {
		left += size * p.counts[i]
	}
	for i := range p.candidates {
		left -= p.candidates[i].pods - p.candidates[i].must
	}
	return left > 0
}
