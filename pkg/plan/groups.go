package plan

import (
	"cmp"
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// byGroup sorts missing pods by group, a group's active pods before its spares, and by index.
func byGroup(d Demand, missing []Missing) []Missing {
	role := func(m Missing) int {
		if m.Spare {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(missing), func(a, b Missing) int {
		return cmp.Or(cmp.Compare(d.Group(a.Part), d.Group(b.Part)), cmp.Compare(role(a), role(b)),
			cmp.Compare(a.Index, b.Index))
	})
}

// groups gathers the missing pods, which are in order of group.
func groups(d Demand, missing []Missing) []topology.Group {
	var out []topology.Group
	for _, m := range missing {
		group := d.Group(m.Part)
		if n := len(out); n == 0 || out[n-1].Index != group {
			out = append(out, topology.Group{Index: group, Domain: m.Domain})
		}
		g := &out[len(out)-1]
		if m.Spare {
			g.Spares++
			g.Beside = m.Beside
		} else {
			g.Pods++
		}
	}
	return out
}

// align lets payers follow groups (R6): among groups that are alike, a group that earlier offers pay for gets a lower
// index. Slots and payers are rearranged in step; groups that are bound to a domain stay as they are.
func align(slots []topology.Slot, groups []topology.Group, payers []int) {
	type block struct{ group, from, to, worst int }
	type shape struct{ pods, spares int }
	var free []block
	at := 0
	for i, g := range groups {
		b := block{group: i, from: at, to: at + g.Pods + g.Spares}
		for _, payer := range payers[b.from:b.to] {
			b.worst = max(b.worst, payer)
		}
		at = b.to
		if g.Domain == "" && b.to > b.from {
			free = append(free, b)
		}
	}
	alike := map[shape][]block{}
	for _, b := range free {
		like := shape{groups[b.group].Pods, groups[b.group].Spares}
		alike[like] = append(alike[like], b)
	}
	oldSlots, oldPayers := slices.Clone(slots), slices.Clone(payers)
	for _, places := range alike {
		order := slices.Clone(places)
		slices.SortStableFunc(order, func(x, y block) int { return cmp.Compare(x.worst, y.worst) })
		for i, to := range places {
			from := order[i]
			copy(payers[to.from:to.to], oldPayers[from.from:from.to])
			copy(slots[to.from:to.to], oldSlots[from.from:from.to])
			for k := to.from; k < to.to; k++ {
				slots[k].Group = groups[to.group].Index
			}
		}
	}
}
