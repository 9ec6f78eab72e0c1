package topology

import "slices"

// emit turns a solution into slots. Only here are single nodes looked at.
func (f *Fleet) emit(r *Request, p *problem, best *solution) Placement {
	stream := make([][]berth, len(p.sites))
	for s := range p.sites {
		for l := p.sites[s].lo; l < p.sites[s].hi; l++ {
			stream[s] = f.board(stream[s], r, p, p.sites[s].block, p.lots[l].class, best.took[l])
		}
	}
	deal := dealer{p: p, put: best.put, stream: stream}
	slots := make([][]Slot, len(r.Groups))
	bound := r.domains()
	for i, g := range r.Groups {
		if bound[i] != "" && g.Pods > 0 {
			s := slices.IndexFunc(p.sites, func(at site) bool { return at.block.path == bound[i] })
			slots[i] = deal.draw(nil, g, s, g.Pods)
		}
	}
	out := make([]Slot, 0, r.pods())
	for i, g := range r.Groups {
		switch {
		case bound[i] != "":
			out = append(out, slots[i]...)
		case r.Confined && !r.OneDomain:
			out = deal.draw(out, g, deal.site(g.Pods), g.Pods)
		default:
			out = deal.spill(out, g)
		}
	}
	return Placement{Slots: out}
}

// dealer hands the berths of the sites to the groups.
type dealer struct {
	p      *problem
	put    []int
	stream [][]berth
}

// draw gives the group n berths of a site.
func (d *dealer) draw(out []Slot, g Group, s, n int) []Slot {
	for _, b := range d.stream[s][:n] {
		out = append(out, Slot{Group: g.Index, Node: b.node.Name, Class: b.class, Domain: b.node.block.path})
	}
	d.stream[s] = d.stream[s][n:]
	return out
}

// site is the first one that is still owed a piece of the size; it is counted as paid.
func (d *dealer) site(pods int) int {
	if pods == 0 {
		return 0
	}
	size := slices.Index(d.p.sizes, pods)
	for s := range d.p.sites {
		if left := &d.put[s*len(d.p.sizes)+size]; *left > 0 {
			*left--
			return s
		}
	}
	panic("topology: a solution has fewer pieces than its request has groups")
}

// spill gives the group the next berths, whatever their sites.
func (d *dealer) spill(out []Slot, g Group) []Slot {
	want := g.Pods
	for s := 0; want > 0; s++ {
		n := min(want, len(d.stream[s]))
		out = d.draw(out, g, s, n)
		want -= n
	}
	return out
}
