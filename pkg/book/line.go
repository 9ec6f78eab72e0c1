package book

import (
	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// eachInLine goes through the gangs that wait, oldest first, with how many are ahead of each in its line. Those whose
// pods are not taken stand in none: nothing is promised to them.
func (w *waitlist) eachInLine(visit func(g *gang, ahead int)) {
	before := map[string]int{}
	for _, g := range w.gangs {
		if g.waits() && !g.denied() {
			visit(g, before[g.full.Flavor])
			before[g.full.Flavor]++
		}
	}
}

// inLine returns how many are ahead of a gang in its line, and how many are in it.
func (w *waitlist) inLine(of *gang) (ahead, all int) {
	w.eachInLine(func(g *gang, before int) {
		if g == of {
			ahead = before
		}
		if g.full.Flavor == of.full.Flavor {
			all++
		}
	})
	return ahead, all
}

// placeOf returns how many would be ahead of a Run that has not been submitted, and how many would be in its line. A
// gang of the same Run is left aside.
func (w *waitlist) placeOf(of *gang) (ahead, all int) {
	for _, g := range w.gangs {
		if g.full.Flavor != of.full.Flavor || g.denied() || !g.waits() && !g.saysThatItWaits() ||
			g.run.UID == of.run.UID {
			continue
		}
		all++
		if byAge(g, of) < 0 {
			ahead++
		}
	}
	return ahead, all + 1
}

// saysThatItWaits reports whether a gang has been refused a start by its Run's status: a book that decides nothing does
// not know it otherwise.
func (g *gang) saysThatItWaits() bool {
	return g.run != nil && !g.opportunistic() && g.run.Status.Phase == rqv1.RunPending && g.run.Status.Refusal != nil &&
		g.run.Status.Refusal.Reason != string(plan.NotCreated) && g.run.DeletionTimestamp == nil && g.shape == nil
}

// mayHaveDate reports whether a gang is forecast that has some ahead of it.
func (g *gang) mayHaveDate(ahead int) bool {
	if g.promise != nil || g.reservation != nil || g.keepsRoom() {
		return ahead < keptDates
	}
	return ahead < dated
}

// misplaced reports whether a gang is forecast and is not to be, or the other way round, or has come so far that people
// are told.
func (g *gang) misplaced(ahead int) bool {
	if g.mayHaveDate(ahead) {
		return g.queue != nil && g.queue.far
	}
	return g.queue == nil || !g.queue.far || g.queue.past(ahead)
}
