package topology

import "slices"

// span is a run of candidates that make up a unit of some level.
type span struct{ lo, hi int }

// greedy places the bound pods, then every piece that it can, and says whether nothing is left over. At every level it
// looks for the one unit that takes all that is left at the least cost, and while there is none fills the roomiest.
func (d *draft) greedy() bool {
	whole := true
	for s := range d.p.candidates {
		must := d.p.candidates[s].must
		whole = d.fill(s, must) == must && whole
	}
	if len(d.p.candidates) > 0 {
		d.spread(span{0, len(d.p.candidates)}, 0)
	}
	return whole && d.left == 0
}

func (d *draft) spread(in span, level int) {
	if level == d.p.levels {
		d.fillPieces(in.lo)
		return
	}
	units := d.p.split(in, level)
	for d.left > 0 && len(units) > 0 {
		i := d.choose(units, level)
		d.spread(units[i], level+1)
		units = slices.Delete(units, i, i+1)
	}
}

// split cuts a span into the units of a level.
func (p *problem) split(in span, level int) []span {
	var units []span
	for s := in.lo; s < in.hi; s++ {
		if s == in.lo || p.candidates[s].units[level] != p.candidates[s-1].units[level] {
			units = append(units, span{s, s})
		}
		units[len(units)-1].hi = s + 1
	}
	return units
}

// choose picks the unit to fill next.
func (d *draft) choose(units []span, level int) int {
	if len(units) == 1 {
		return 0
	}
	holder, least := -1, cost{}
	roomiest, most := 0, -1
	for i, u := range units {
		room := d.room(u)
		if room >= d.left {
			mark := len(d.log)
			d.spread(u, level+1)
			if d.left == 0 && (holder < 0 || d.cost.less(&least)) {
				holder, least = i, d.cost
			}
			d.undo(mark)
		}
		if d.touched[level][d.p.candidates[u.lo].units[level]] > 0 && room > 0 {
			room += d.left // costs nothing more: goes before every other
		}
		if room > most {
			roomiest, most = i, room
		}
	}
	if holder >= 0 {
		return holder
	}
	return roomiest
}

// room is how many pods of whole pieces the candidates could take if each class were the only one to be paid for.
func (d *draft) room(u span) int {
	smallest := d.p.sizes[len(d.p.sizes)-1]
	pods := 0
	for s := u.lo; s < u.hi; s++ {
		at, free := &d.p.candidates[s], 0
		for l := at.lo; l < at.hi; l++ {
			free += d.p.bins[l].pods - d.took[l]
		}
		pods += free / smallest * smallest
	}
	return pods
}
