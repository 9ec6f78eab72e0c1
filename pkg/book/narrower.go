package book

import (
	"time"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// widthWithout returns the widest width in pods below its own at which a gang that lost ranks could go on, once the
// pods beyond it have given up their room; 0 when there is none (R27).
func (x *starter) widthWithout(g *gang, missing []plan.Missing, rejected func(string) bool, now time.Time) int {
	if !g.started() {
		return 0
	}
	n := plan.Narrowing{Fleet: x.fleet, Accounts: x.accounts, Demand: g.full, Width: g.demand.Pods(),
		Least: g.demand.LeastPods, Missing: missing, Excluded: rejected, Now: now,
		Claim: func(missing []plan.Missing) plan.Claim { return g.claim(g.keptFor(missing)) }}
	for m := range g.all() {
		if m.placed() {
			held := g.holding(m)
			n.Placed = append(n.Placed, plan.Placed{Part: m.part, Node: held.Node, GPUs: held.GPUs, Beside: held.Beside})
		}
	}
	return n.Widest()
}
