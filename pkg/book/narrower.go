package book

import (
	"time"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// widthWithout returns the widest width in pods below its own at which a gang that lost ranks could go on, once the
// pods beyond it have given up their room; 0 when there is none (R27). Widths are tried as they are given up, one step
// at a time.
func (x *starter) widthWithout(g *gang, missing []plan.Missing, rejected func(string) bool, now time.Time) int {
	if g.demand.StepPods == 0 || !g.started() {
		return 0
	}
	for width := g.demand.Pods() - g.demand.StepPods; width >= g.demand.LeastPods; width -= g.demand.StepPods {
		d := g.full.At(width)
		if within := d.Within(missing); len(within) == 0 || x.fitsWithout(g, d, within, rejected, now) {
			return width
		}
	}
	return 0
}

// fitsWithout reports whether missing ranks would fit a narrower shape of their gang if the pods beyond it were gone.
func (x *starter) fitsWithout(g *gang, d plan.Demand, missing []plan.Missing, rejected func(string) bool,
	now time.Time) bool {
	fork := plan.NewFork(x.fleet, x.accounts)
	defer fork.Revert()
	for m := range g.all() {
		if m.placed() && !d.Has(m.part) {
			held := g.holding(m)
			fork.Give(held.Node, held.GPUs, held.Beside)
		}
	}
	claim := g.claim(g.keptFor(missing))
	return plan.Fits(x.fleet, x.accounts, d, claim, missing, rejected, now)
}
