package book

import (
	"maps"
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// awaitedRanks returns the ranks of a running gang for which something is kept, and for which others are to make pods
// that are not there, in order. An old pod may be there that has ended; what one still holds is not kept for anybody.
func (k *keptRooms) awaitedRanks(g *gang) []int {
	if len(g.vacant)+len(g.aside)+len(g.lapses) == 0 || !g.late() {
		return nil
	}
	awaited := map[int]bool{}
	lacks := func(index int) bool { m := g.rankAt(index); return m == nil || m.stage == finished }
	for index := range g.aside {
		awaited[index] = lacks(index)
	}
	for i := range g.vacant {
		v := &g.vacant[i]
		if h := k.seats.held[v.pod]; v.index != anyRank && lacks(v.index) && (h == nil || !h.leased && !h.bound) {
			awaited[v.index] = true
		}
	}
	maps.DeleteFunc(awaited, func(_ int, waits bool) bool { return !waits })
	return slices.Sorted(maps.Keys(awaited))
}

// comeStill returns how many pods others are still to make of a gang: fewer than it lacks ranks once they have made it
// smaller, whichever ranks its pods have.
func (g *gang) comeStill() int {
	ranks, there := g.demand.Pods(), 0
	wants := g.run.Spec.Ranks(ranks)
	if wants == ranks {
		return ranks
	}
	for index := range ranks {
		m := g.rankAt(index)
		if m != nil && m.stage != finished && !m.leaving || g.completed(index) {
			there++
		}
	}
	return max(0, wants-there)
}

// nextForgone tells when something that is kept for such a rank may have been kept too long.
func (k *keptRooms) nextForgone(e *earliest, now time.Time) {
	for g := range k.roster.classes.theirs {
		ranks := k.awaitedRanks(g)
		if len(ranks) != len(g.lapses) || len(ranks) > g.comeStill() {
			e.by(now)
		}
		for _, index := range ranks {
			if at, noted := g.lapses[index]; noted {
				e.by(at)
			} else {
				e.by(now)
			}
		}
	}
}

// forgo gives up what has been kept for gangDeadline for ranks whose pods others have not made (R42), or at once
// while the Run rests after that was in vain (R46), or where others have made the group smaller: the Run goes on
// without. One that comes all the same is placed wherever there is room.
func (k *keptRooms) forgo(now time.Time) {
	for g := range k.roster.classes.theirs {
		ranks := k.awaitedRanks(g)
		if len(ranks)+len(g.lapses) == 0 {
			continue
		}
		lapses, come := map[int]time.Time{}, g.comeStill()
		for i, index := range ranks {
			at, noted := g.lapses[index]
			switch {
			case i >= come, g.run.Status.HeldInVain.Rests(now):
				k.forgoRank(g, index)
			case !noted:
				lapses[index] = now.Add(k.args.GangDeadline.Duration)
			case now.Before(at):
				lapses[index] = at
			default:
				if l := g.latest[rank.Part{Index: index}]; l != nil && l.ended.After(g.keptInVain) {
					g.keptInVain = l.ended
				}
				k.forgoRank(g, index)
			}
		}
		g.lapses = lapses
	}
}

// forgoRank gives up what is kept for a rank.
func (k *keptRooms) forgoRank(g *gang, index int) {
	if g.forgone == nil {
		g.forgone = map[int]bool{}
	}
	g.forgone[index] = true
	k.seats.vacate(g, func(v *vacancy) bool { return v.index == index })
	k.seats.giveAside(g, index)
	delete(g.kept, index)
	k.waiting.file(g)
	k.waiting.nudge(g)
	k.mail.reconcile(keyOf(g.run), lane.Date) // which says so
}
