package resolver

import (
	"cmp"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// piece is the least that can be cut by itself: a spare, a step, or what a ticket ends.
type piece struct {
	action rqv1.CutAction
	tenant int // index
	part   int // index of the spare or step in its tenant
	holds  []Holding
	gpus   int
}

// pieces lists all that may be cut, in the order of R19. The tickets come last, in no order: they are drawn.
func pieces(tenants []Tenant) []piece {
	var all []piece
	add := func(action rqv1.CutAction, tenant, part int, holds []Holding) {
		all = append(all, piece{action, tenant, part, holds, gpus(holds)})
	}
	for _, s := range spareOrder(tenants) {
		add(rqv1.CutDropSpare, s.tenant, s.index, tenants[s.tenant].Spares[s.index].Holds)
	}
	for _, s := range stepOrder(tenants) {
		add(rqv1.CutShrink, s.tenant, s.index, tenants[s.tenant].Steps[s.index].Holds)
	}
	for i := range tenants {
		if tenants[i].draws() {
			add(rqv1.CutLottery, i, 0, tenants[i].Rest)
		}
	}
	return all
}

// part is a spare or a step of a tenant.
type part struct{ tenant, index int }

// spareOrder drops spares by namespace and name of their Run, the highest index first.
func spareOrder(tenants []Tenant) []part {
	var order []part
	for i, t := range tenants {
		for s := range t.Spares {
			order = append(order, part{i, s})
		}
	}
	slices.SortStableFunc(order, func(a, b part) int {
		x, y := &tenants[a.tenant], &tenants[b.tenant]
		return cmp.Or(byName(x.Run, y.Run), cmp.Compare(y.Spares[b.index].Index, x.Spares[a.index].Index))
	})
	return order
}

// stepOrder gives up steps one at a time: of the tenants' next steps a borrowed one first, then one of the tenant with
// the most steps left, then by namespace and name.
func stepOrder(tenants []Tenant) []part {
	var order []part
	next := make([]int, len(tenants))
	for {
		best := -1
		for i, t := range tenants {
			if next[i] < len(t.Steps) && (best < 0 || stepsBefore(tenants, next, i, best)) {
				best = i
			}
		}
		if best < 0 {
			return order
		}
		order = append(order, part{best, next[best]})
		next[best]++
	}
}

func stepsBefore(tenants []Tenant, next []int, a, b int) bool {
	x, y := &tenants[a], &tenants[b]
	if p, q := x.Steps[next[a]].Borrowed, y.Steps[next[b]].Borrowed; p != q {
		return p
	}
	return cmp.Or(cmp.Compare(len(y.Steps)-next[b], len(x.Steps)-next[a]), byName(x.Run, y.Run)) < 0
}
