package topology

import (
	"cmp"
	"maps"
	"slices"
)

func (f *Fleet) unknownFlavor(r *Request) *Shortfall {
	gpus := r.pods() * r.GPUsPerPod
	return &Shortfall{Kind: UnknownFlavor, Flavor: r.Flavor, Flavors: f.Flavors(), WantedGPUs: gpus, ShortGPUs: gpus}
}

// shortfall says why p has no solution: first what could never fit, then what does not fit now, then who cannot pay.
func (f *Fleet) shortfall(r *Request, s *flavorNodes, p *problem) *Shortfall {
	out := &Shortfall{Flavor: r.Flavor, WantedGPUs: r.pods() * r.GPUsPerPod}
	out.exclude(r, s)
	if out.never(s, p) {
		return out
	}
	// Without the purse the same problem tells room from money.
	unpaid := *r
	unpaid.Purse = nil
	room := f.layOut(&unpaid, s)
	if room.solve() != nil {
		out.Kind = Unpayable
		out.measure(p)
	} else {
		out.Kind = NoRoom
		out.measure(room)
	}
	return out
}

// never finds what would not fit even if nothing ran, and says whether there is such a limit.
func (out *Shortfall) never(s *flavorNodes, p *problem) bool {
	largest, best, total := 0, (*fabricDomain)(nil), 0
	for _, b := range s.domains {
		for size, nodes := range b.sizes {
			if nodes > 0 {
				largest = max(largest, size)
			}
		}
		if best == nil || b.podsIfEmpty(p.gpus) > best.podsIfEmpty(p.gpus) {
			best = b
		}
	}
	if largest < p.gpus {
		out.Kind, out.UnitGPUs, out.LargestGPUs = PodTooLarge, p.gpus, largest
		out.ShortGPUs = out.UnitGPUs - out.LargestGPUs
		return true
	}
	if out.boundTooLarge(s, p) {
		return true
	}
	if len(p.sizes) == 0 {
		return false
	}
	if holds := best.podsIfEmpty(p.gpus); holds < p.sizes[0] {
		out.Kind, out.UnitGPUs, out.LargestGPUs = GroupTooLarge, p.sizes[0]*p.gpus, holds*p.gpus
		out.ShortGPUs = out.UnitGPUs - out.LargestGPUs
		return true
	}
	smallest := p.sizes[len(p.sizes)-1]
	for _, b := range s.domains {
		must := p.must[b.path]
		total += must + (b.podsIfEmpty(p.gpus)-must)/smallest*smallest
	}
	if total*p.gpus < out.WantedGPUs {
		out.Kind, out.PlaceableGPUs, out.ShortGPUs = FleetTooSmall, total*p.gpus, out.WantedGPUs-total*p.gpus
		return true
	}
	return false
}

// boundTooLarge finds the first domain that could never hold the pods that are bound to it.
func (out *Shortfall) boundTooLarge(s *flavorNodes, p *problem) bool {
	for _, domain := range slices.Sorted(maps.Keys(p.must)) {
		holds := 0
		if i, ok := s.find(domain); ok {
			holds = s.domains[i].podsIfEmpty(p.gpus)
		}
		if holds < p.must[domain] {
			out.Kind, out.Domain = GroupTooLarge, domain
			out.UnitGPUs, out.LargestGPUs = p.must[domain]*p.gpus, holds*p.gpus
			out.ShortGPUs = out.UnitGPUs - out.LargestGPUs
			return true
		}
	}
	return false
}

// measure fills the problem as far as it goes, then lets every piece that found no place take what its best candidate
// has left, and reports the sum.
func (out *Shortfall) measure(p *problem) {
	d := newDraft(p)
	d.greedy()
	short := d.left
	for s := range p.candidates {
		at := &p.candidates[s]
		pods := 0
		for l := at.lo; l < at.hi; l++ {
			pods += d.took[l]
		}
		for i, size := range p.sizes {
			pods -= d.put[s*len(p.sizes)+i] * size
		}
		if at.must > pods {
			short += at.must - pods
			if out.Domain == "" {
				out.Domain, out.DomainGPUs = at.domain.path, pods*p.gpus
			}
		}
	}
	for _, part := range d.parts() {
		short -= part.pods
		if out.Domain == "" {
			out.Domain, out.DomainGPUs = p.candidates[part.candidate].domain.path, part.pods*p.gpus
		}
	}
	out.ShortGPUs = short * p.gpus
	out.PlaceableGPUs = out.WantedGPUs - out.ShortGPUs
}

// part is the pods of a piece that fit on a candidate that cannot hold all of it.
type part struct{ candidate, pods int }

// parts gives every piece that is left, largest first, the candidate that holds most of it; no candidate serves two.
func (d *draft) parts() []part {
	var open []part
	for s := range d.p.candidates {
		mark := len(d.log)
		if pods := d.fill(s, d.left); pods > 0 {
			open = append(open, part{s, pods})
		}
		d.undo(mark)
	}
	slices.SortStableFunc(open, func(a, b part) int { return cmp.Compare(b.pods, a.pods) })
	var out []part
	for i, size := range d.p.sizes {
		for n := d.rest[i]; n > 0 && len(open) > 0; n-- {
			if pods := d.fill(open[0].candidate, min(size, open[0].pods)); pods > 0 {
				out = append(out, part{open[0].candidate, pods})
			}
			open = open[1:]
		}
	}
	return out
}

// exclude counts the free GPUs that the request could use if every node did: pieces smaller than a pod are of no use
// wherever they are.
func (out *Shortfall) exclude(r *Request, s *flavorNodes) {
	if !r.choosy() {
		return
	}
	for _, b := range s.domains {
		for _, n := range b.nodes {
			if n.pool == nil {
				continue
			}
			if pods := n.free()/r.GPUsPerPod - r.room(n); pods > 0 {
				out.ExcludedGPUs += pods * r.GPUsPerPod
				if out.ExcludedNode == "" || n.Name < out.ExcludedNode {
					out.ExcludedNode = n.Name
				}
			}
		}
	}
}
