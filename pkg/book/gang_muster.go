package book

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// parts goes through the members that take part, as all does, with one for each pod of a gang that is to start and has
// not been made, or of one that runs and is made late or comes as a whole, unless a place is kept for it.
func (g *gang) parts() iter.Seq[*member] {
	return func(yield func(*member) bool) {
		settled := sync.OnceValue(g.settledScopes)
		made := func(i int, spare bool) bool {
			return spare || g.givesUp(i) || g.hasPlace(i) || g.completed(i) || !g.madeLate() && !g.comesWhole(i, settled())
		}
		for _, spare := range [...]bool{false, true} {
			s := g.squad(rank.Part{Spare: spare})
			for i := range s.size {
				m := s.memberAt(i)
				if m == nil && (g.started() && made(i, spare) || g.opportunistic()) {
					continue
				} else if m == nil {
					m = &member{gang: g, part: rank.Part{Index: i, Spare: spare}}
				}
				if !yield(m) {
					return
				}
			}
		}
	}
}

// musters reports whether a gang that is to start has its places, so that its pods are to be there: its leader has been
// accepted at its own, or it waits until others have left, which may be told to go only then, or until other rules have
// been asked.
func (g *gang) musters() bool {
	if g.run == nil || g.started() || g.opportunistic() || !g.underWay() {
		return false
	}
	least := reserved
	if g.awaiting > 0 || g.activation != nil || g.sweepsLater() || g.unsure() {
		least = assigned
	}
	there := func(m *member) bool { return m != nil && m.stage >= least && !m.leaving }
	return slices.ContainsFunc(g.active.members, there) || slices.ContainsFunc(g.spares.members, there)
}

// disbands reports whether the pods of a gang that waits are to go, all but its leader's: they have no places.
func (g *gang) disbands() bool {
	return g.waits() && !g.woken && !g.musters() && g.refusal.Reason != plan.NotYet && !g.futile.keeps(g.refusal)
}

// lacksRank reports whether a rank of a running gang has no pod, the cohort that it grows by apart.
func (g *gang) lacksRank() bool {
	ranks := g.settled().Pods()
	return len(g.active.members) < ranks || slices.Contains(g.active.members[:ranks], nil)
}

// awaitsPods reports whether places of the gang are kept for pods that have not been made, and that are to be before
// any of it is bound.
func (g *gang) awaitsPods() bool {
	if g.standIns == 0 || g.run == nil || !g.run.Spec.TheirsComeLate() {
		return g.standIns > 0
	}
	standIn := func(m *member) bool { return m != nil && m.standIn }
	return slices.ContainsFunc(g.spares.members, standIn) || !g.firstAreThere()
}

// sweepsLater reports whether shards are to leave the gang's places, and stay until all of its pods have been made.
func (g *gang) sweepsLater() bool { return g.crowds && g.awaitsPods() }

// denied reports whether the gang waits because its pods are not made: the API server does not take them, or others did
// not make them in time.
func (g *gang) denied() bool { return g.refusal != nil && g.refusal.AboutPods() }

// takesTooLong reports whether a gang has waited for its pods up to its deadline, and not one has come.
func (g *gang) takesTooLong(now time.Time) bool {
	return g.awaitsPods() && !g.denial.moves && !now.Before(g.deadline)
}

// untold reports whether it has been decided who is cut for a gang, and nobody has been told of it.
func (g *gang) untold() bool {
	return g.activation != nil && !g.activation.Failed && g.activatedAt().IsZero()
}

// bereft reports whether a gang has lost the places for which it has been decided who is cut, before anybody was told.
func (g *gang) bereft() bool { return g.untold() && !g.underWay() }

// awaitsLate reports whether all pods that there are of a gang are at the barrier, and the others are made only once
// these are bound: their places are kept (R40).
func (g *gang) awaitsLate() bool {
	if g.comesLate() {
		return g.arrived(1)
	}
	if g.standIns == 0 || g.run == nil || !g.run.Spec.TheirsComeLate() || g.started() ||
		!g.canBeLed() && !g.complete() {
		return false
	}
	return g.arrived(g.first()) && g.spares.reserved == g.spares.size
}
