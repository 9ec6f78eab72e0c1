package topology

import "slices"

// emit turns a solution into slots. Only here are single nodes looked at, and spares told from active pods.
func (f *Fleet) emit(r *Request, p *problem, best *solution) Placement {
	d := &dealer{p: p, slots: make([]Slot, r.pods()), home: p.homes(r, best.put), at: make([]int, len(r.Groups))}
	for i := 1; i < len(r.Groups); i++ {
		d.at[i] = d.at[i-1] + r.Groups[i-1].size()
	}
	stands := f.setAside(r, p, best.took, d.home)
	d.active, d.spare = make([][]berth, len(p.sites)), make([][]berth, len(p.sites))
	for s := range p.sites {
		for l := p.sites[s].lo; l < p.sites[s].hi; l++ {
			var aside stand
			if stands != nil {
				aside = stands[l]
			}
			d.active[s] = f.board(d.active[s], r, p, p.sites[s].block, p.lots[l].class, best.took[l]-aside.spares,
				aside.chosen())
			d.spare[s] = aside.board(d.spare[s], p.gpus)
		}
	}
	for _, bound := range [...]bool{true, false} { // the former have no choice
		for _, spares := range [...]bool{false, true} {
			for i, domain := range r.domains() {
				if bound == (domain != "") {
					d.deal(&r.Groups[i], i, spares)
				}
			}
		}
	}
	if stands != nil {
		newCrowd(r, p, stands, d).part()
	}
	return Placement{Slots: d.slots}
}

// homes is the site of every group that lies in one, and -1 for the others.
func (p *problem) homes(r *Request, put []int) []int {
	left := slices.Clone(put)
	home := make([]int, len(r.Groups))
	for i, domain := range r.domains() {
		switch size := r.Groups[i].size(); {
		case size == 0, domain == "" && !r.Confined && !r.OneDomain:
			home[i] = -1
		case domain != "":
			home[i] = slices.IndexFunc(p.sites, func(at site) bool { return at.block.path == domain })
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

// dealer hands the berths of the sites to the groups.
type dealer struct {
	p             *problem
	slots         []Slot
	at            []int // by group, its first slot
	home          []int
	active, spare [][]berth // by site
}

// deal fills the slots of a group's active pods or spares: from the berths meant for them, and else from the others.
func (d *dealer) deal(g *Group, i int, spares bool) {
	out := d.slots[d.at[i]:][:g.Pods]
	streams := [...][][]berth{d.active, d.spare}
	if spares {
		out = d.slots[d.at[i]+g.Pods:][:g.Spares]
		streams = [...][][]berth{d.spare, d.active}
	}
	from, to := d.home[i], d.home[i]+1
	if from < 0 {
		from, to = 0, len(d.p.sites)
	}
	for _, stream := range streams {
		for s := from; s < to && len(out) > 0; s++ {
			n := min(len(out), len(stream[s]))
			for k, b := range stream[s][:n] {
				out[k] = Slot{Group: g.Index, Spare: spares, Node: b.node.Name, Class: b.class, Domain: b.node.block.path}
			}
			out, stream[s] = out[n:], stream[s][n:]
		}
	}
}
