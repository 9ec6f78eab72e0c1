package book

import (
	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// standing is where a gang stands in line: how many are ahead of it, and how many of those are rivals, which wait for
// the same as it.
type standing struct{ ahead, rivals int }

// scarce is what gangs wait for one after the other. Those that nobody pays for, or that other rules keep from the
// nodes, may be many and have no dates: they take none from those that GPUs alone are short for.
type scarce struct {
	flavor string
	what   shortage
}

type shortage int

const (
	ofGPUs shortage = iota
	ofMoney
	ofNodes // that other rules accept
)

// scarce returns what a gang waits for that has been refused, by its Run's status where the book does not know why.
func (g *gang) scarce() scarce {
	r := g.refusal
	if r == nil {
		r = g.refusalTold()
	}
	switch {
	case r.AboutMoney() && !r.Elsewhere:
		return scarce{g.full.Flavor, ofMoney}
	case r.Reason == plan.NodesRejected, r.Rejected != nil && r.Rejected.Vain:
		return scarce{g.full.Flavor, ofNodes}
	}
	return scarce{g.full.Flavor, ofGPUs}
}

// inLine reports whether a gang waits for those ahead of it: one that never fits waits for other nodes, and nothing is
// promised to one whose pods are not taken.
func (g *gang) inLine() bool { return g.waits() && !g.refusal.NeedsNodes() && !g.denied() }

// eachInLine goes through the gangs that wait in line, oldest first.
func (w *waitlist) eachInLine(visit func(g *gang, at standing)) {
	before, rivals := map[string]int{}, map[scarce]int{}
	for _, g := range w.gangs {
		if g.inLine() {
			what := g.scarce()
			visit(g, standing{before[what.flavor], rivals[what]})
			before[what.flavor]++
			rivals[what]++
		}
	}
}

// inLine returns where a gang stands in line, and how many are in it.
func (w *waitlist) inLine(of *gang) (at standing, all int) {
	w.eachInLine(func(g *gang, its standing) {
		if g == of {
			at = its
		}
		if g.full.Flavor == of.full.Flavor {
			all++
		}
	})
	return at, all
}

// placeOf returns where a Run would stand in line that has not been submitted, and how many would be in it. A gang of
// the same Run is left aside.
func (w *waitlist) placeOf(of *gang) (at standing, all int) {
	for _, g := range w.gangs {
		if g.full.Flavor != of.full.Flavor || !g.inLine() && !g.saysThatItWaits() || g.run.UID == of.run.UID {
			continue
		}
		all++
		if byAge(g, of) < 0 {
			at.ahead++
			if g.scarce() == of.scarce() {
				at.rivals++
			}
		}
	}
	return at, all + 1
}

// saysThatItWaits reports whether a gang has been refused a start by its Run's status: a book that decides nothing does
// not know it otherwise.
func (g *gang) saysThatItWaits() bool {
	if g.run == nil || g.opportunistic() || g.run.Status.Phase != rqv1.RunPending || g.run.Status.Refusal == nil {
		return false
	}
	why := g.refusalTold()
	return g.refusal == nil && !why.NeedsNodes() && why.Reason != plan.NotCreated &&
		g.run.DeletionTimestamp == nil && g.shape == nil
}

// refusalTold returns why a gang was refused by its Run's status, which says so.
func (g *gang) refusalTold() *plan.Refusal {
	return &plan.Refusal{Reason: plan.Reason(g.run.Status.Refusal.Reason)}
}

// mayHaveDate reports whether a gang is forecast that stands so in line.
func (g *gang) mayHaveDate(at standing) bool {
	if g.promise != nil || g.reservation != nil || g.keepsRoom() {
		return at.rivals < keptDates
	}
	return at.rivals < dated
}

// misplaced reports whether a gang is forecast and is not to be, or the other way round, or has come so far that people
// are told.
func (g *gang) misplaced(at standing) bool {
	if g.mayHaveDate(at) {
		return g.queue != nil && g.queue.far
	}
	return g.queue == nil || !g.queue.far || g.queue.past(at.ahead)
}
