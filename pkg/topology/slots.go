package topology

import "slices"

// slotsOf turns a solution into slots. Only here are single nodes looked at, and spares told from active pods.
func (f *Fleet) slotsOf(r *Request, p *problem, best *solution) Placement {
	d := &assigner{p: p, slots: make([]Slot, r.pods()), home: p.homes(r, best.put), at: make([]int, len(r.Groups))}
	for i := 1; i < len(r.Groups); i++ {
		d.at[i] = d.at[i-1] + r.Groups[i-1].size()
	}
	spareBins := f.setAside(r, p, best.took, d.home)
	d.active, d.spare = make([][]nodeSlot, len(p.candidates)), make([][]nodeSlot, len(p.candidates))
	for s := range p.candidates {
		for l := p.candidates[s].lo; l < p.candidates[s].hi; l++ {
			var aside spareBin
			if spareBins != nil {
				aside = spareBins[l]
			}
			d.active[s] = f.pickNodes(d.active[s], r, p, p.candidates[s].domain, p.bins[l].class, best.took[l]-aside.spares,
				aside.chosen())
			d.spare[s] = aside.slots(d.spare[s])
		}
	}
	for _, bound := range [...]bool{true, false} { // groups bound to a domain have no choice
		for _, spares := range [...]bool{false, true} {
			for i, domain := range r.domains() {
				if bound == (domain != "") {
					d.assign(&r.Groups[i], i, spares)
				}
			}
		}
	}
	if spareBins != nil {
		newSeparation(r, p, spareBins, d).improve()
	}
	return Placement{Slots: d.slots}
}

// homes is, by group, the candidate that the group lies in; -1 for a group that lies in several.
func (p *problem) homes(r *Request, put []int) []int {
	left := slices.Clone(put)
	home := make([]int, len(r.Groups))
	for i, domain := range r.domains() {
		switch size := r.Groups[i].size(); {
		case size == 0, domain == "" && !r.Confined && !r.OneDomain:
			home[i] = -1
		case domain != "":
			home[i] = slices.IndexFunc(p.candidates, func(at candidate) bool { return at.domain.path == domain })
		case r.OneDomain:
			home[i] = slices.IndexFunc(put, func(pieces int) bool { return pieces > 0 })
		default:
			piece := slices.Index(p.sizes, size)
			for left[home[i]*len(p.sizes)+piece] == 0 {
				home[i]++
			}
			left[home[i]*len(p.sizes)+piece]--
		}
	}
	return home
}

// assigner gives the places on the candidates' nodes to the pods of the groups.
type assigner struct {
	p             *problem
	slots         []Slot
	at            []int // by group, its first slot
	home          []int
	active, spare [][]nodeSlot // by candidate
}

// assign fills the slots of a group's active pods or spares: from the places meant for them, and else from the others.
func (d *assigner) assign(g *Group, i int, spares bool) {
	out := d.slots[d.at[i]:][:g.Pods]
	streams := [...][][]nodeSlot{d.active, d.spare}
	if spares {
		out = d.slots[d.at[i]+g.Pods:][:g.Spares]
		streams = [...][][]nodeSlot{d.spare, d.active}
	}
	from, to := d.home[i], d.home[i]+1
	if from < 0 {
		from, to = 0, len(d.p.candidates)
	}
	for _, stream := range streams {
		for s := from; s < to && len(out) > 0; s++ {
			n := min(len(out), len(stream[s]))
			for k, b := range stream[s][:n] {
				out[k] = Slot{Group: g.Index, Spare: spares, Node: b.node.Name, Class: b.class, Domain: b.node.domain.path}
			}
			out, stream[s] = out[n:], stream[s][n:]
		}
	}
}
