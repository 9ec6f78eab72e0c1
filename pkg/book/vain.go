package book

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Places that a gang holds for pods which others are to make are nobody's GPUs meanwhile, and paid for by nobody. A
// gang for which they did not come in time rests, the longer the more often that has happened (R46): its Run's
// status says until when. Meanwhile it is like one whose pods the API server does not take: it has no date, keeps no
// money, and nobody is cut for it.

// mayRest reports whether places are held for a gang that is to start, for pods that are made late.
func (g *gang) mayRest() bool {
	return g.run != nil && g.run.Spec.TheirsComeLate() && !g.started() && !g.over() && g.run.Status.HeldInVain != nil
}

// rests reports whether a gang that is to start would hold places again for pods which are not there, and may not yet.
// One for which others have been cut starts: it would have been in vain.
func (g *gang) rests(now time.Time) bool {
	return g.mayRest() && !g.activates() && g.run.Status.HeldInVain.Rests(now) && g.active.within < g.active.size
}

// restsInVain refuses a gang while it rests.
func (g *gang) restsInVain() *plan.Refusal {
	h := g.run.Status.HeldInVain
	again := ""
	if h.Count > 1 {
		again = fmt.Sprintf(", as in %d attempts lately", h.Count)
	}
	return &plan.Refusal{Reason: plan.HeldInVain, Owner: g.demand.Owner, Flavor: g.demand.Flavor,
		WantedGPUs: g.full.Least().HeldGPUs(), Message: fmt.Sprintf("places were held in vain for pods that were not "+
			"created in time%s: none are held again before %s, unless all of the group's pods exist by then", again,
			h.Until.UTC().Format(time.RFC3339))}
}

// restAnew begins a rest that the status of a gang's Run tells of: what it still holds for absent pods is given back,
// and what was decided for it is off if nobody has been told.
func (v *activations) restAnew(g *gang) {
	if !g.mayRest() || g.run.Status.HeldInVain.Until.Time.Equal(g.restsTill) {
		return
	}
	g.restsTill = g.run.Status.HeldInVain.Until.Time
	v.roster.classes.resting[g] = true
	if !v.roster.open {
		return // nothing is held for it yet
	}
	if g.untold() {
		v.letOff(g)
	}
	if g.activates() {
		return
	}
	v.places.unwind(g)
	if g.promised() != nil {
		v.agenda.setPromise(g, nil)
	}
	if g.complete() && g.leader() != nil {
		v.waiting.wake(g) // it has nothing by now, and is told why
	}
}

// rested has gangs be tried again whose rest is over.
func (v *activations) rested(now time.Time) {
	for _, g := range slices.SortedFunc(maps.Keys(v.roster.classes.resting), byAge) {
		if now.Before(g.restsTill) {
			continue
		}
		delete(v.roster.classes.resting, g)
		if g.denied() && g.complete() {
			v.waiting.wake(g)
		}
	}
}

// nextRested tells when the next rest is over.
func (v *activations) nextRested(e *earliest) {
	for g := range v.roster.classes.resting {
		e.by(g.restsTill)
	}
}
