package book

import (
	"cmp"
	"maps"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
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
	for index, l := range g.lapses {
		if l.over {
			awaited[index] = lacks(index)
		}
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

// lapse is until when something is kept for a rank that lacks its pod. over says that its place has been given up, and
// that its money is once the Run's status says so: whoever comes next reads it there.
type lapse struct {
	at   time.Time
	over bool
}

// nextForgone tells when something that is kept for such a rank may have been kept too long.
func (k *keptRooms) nextForgone(e *earliest, now time.Time) {
	for g := range k.roster.classes.theirs {
		ranks, come := k.awaitedRanks(g), g.comeStill()
		if len(ranks) != len(g.lapses) {
			e.by(now)
		}
		for _, index := range ranks {
			l, noted := g.lapses[index]
			if l.over {
				continue
			}
			come--
			if !noted || come < 0 {
				e.by(now)
			} else {
				e.by(l.at)
			}
		}
	}
}

// recall notes until when is kept what a predecessor of this process has kept for such ranks: it counts from when their
// last Leases ended, but not to the end at once, since whoever makes pods may have been away as well.
func (k *keptRooms) recall(now time.Time) {
	for g := range k.roster.classes.theirs {
		for _, index := range k.awaitedRanks(g) {
			last := g.latest[rank.Part{Index: index}]
			if last == nil {
				continue
			}
			if g.lapses == nil {
				g.lapses = map[int]lapse{}
			}
			g.lapses[index] = lapse{at: latest(last.ended.Add(k.args.GangDeadline.Duration), now.Add(lossesWithin))}
		}
	}
}

// forgo has what has been kept for gangDeadline for ranks whose pods others have not made be given up (R42), or at once
// while the Run rests after that was in vain (R46), or where others have made the group smaller: the Run goes on
// without.
func (k *keptRooms) forgo(now time.Time) {
	for g := range k.roster.classes.theirs {
		ranks := k.awaitedRanks(g)
		if len(ranks)+len(g.lapses) == 0 {
			continue
		}
		lapses, come := map[int]lapse{}, g.comeStill()
		for _, index := range ranks {
			l, noted := g.lapses[index]
			switch last := g.latest[rank.Part{Index: index}]; {
			case l.over:
			case come == 0, g.run.Status.HeldInVain.Rests(now):
				l.over = true
			case !noted:
				l.at = now.Add(k.args.GangDeadline.Duration)
				if last != nil && last.vainly(k.args.GangDeadline.Duration) {
					g.keepsInVain(last.after)
					k.mail.reconcile(keyOf(g.run), lane.Date) // which counts it
				}
			case !now.Before(l.at):
				l.over = true
				if last != nil {
					g.keepsInVain(last.ended)
				}
			}
			if l.over && !g.lapses[index].over {
				k.seats.vacate(g, func(v *vacancy) bool { return v.index == index })
				k.mail.reconcile(keyOf(g.run), lane.Date) // which says so
			} else if !l.over {
				come--
			}
			lapses[index] = l
		}
		g.lapses = lapses
	}
}

// keepsInVain notes since when a place has been kept in vain.
func (g *gang) keepsInVain(since time.Time) { g.keptInVain = latest(g.keptInVain, since) }

// giveUpForgone gives up what is kept for ranks of which a Run's status says so by now. It reports whether it has been
// for one whose pod has come meanwhile, and waits, or whose last pod is still there, for which others have waited.
func (k *keptRooms) giveUpForgone(g *gang, before []rqv1.RunForgone) (waits bool) {
	if !g.late() || slices.Equal(before, g.run.Status.Forgone) {
		return false
	}
	for i := range g.run.Status.Forgone {
		index := int(g.run.Status.Forgone[i].Index)
		if !g.forgone(index) {
			continue
		}
		k.seats.vacate(g, func(v *vacancy) bool { return v.index == index })
		k.seats.giveAside(g, index)
		delete(g.kept, index)
		delete(g.lapses, index)
		m := g.rankAt(index)
		waits = waits || m != nil && (m.stage == unplaced || m.leaving && m.stays())
	}
	k.waiting.file(g)
	k.waiting.nudge(g)
	return waits
}

// forgone reports whether nothing is kept for a rank: what was has been given up, as the Run's status says, and the
// rank has held nothing since, or its pod comes after one that has completed. One whose pod is there is not where none
// of the others goes on: the group starts again as a whole then.
func (g *gang) forgone(index int) bool {
	if !g.late() {
		return false
	}
	m, last := g.comer(index)
	if m != nil && last != nil && last.reason == rqv1.ClosedCompleted {
		return g.anyHolds(func(other *member) bool { return other.goesOnBeside(m, last.ended) })
	}
	ranks := g.run.Status.Forgone
	at, found := slices.BinarySearchFunc(ranks, index, func(f rqv1.RunForgone, index int) int {
		return cmp.Compare(int(f.Index), index)
	})
	return found && (last == nil || last.pod == ranks[at].Pod && last.reason != "") &&
		(m == nil || g.anyHolds(func(*member) bool { return true }))
}

// comer returns a rank's pod that comes after another, nil where there is none that has not ended, and the Lease that
// the rank had last.
func (g *gang) comer(index int) (*member, *lease) {
	m, last := g.rankAt(index), g.latest[rank.Part{Index: index}]
	if m == nil || m.standIn || m.stage == finished || last != nil && last.pod == m.pod.UID {
		return nil, last
	}
	return m, last
}

// comesAfterDone reports whether a rank's pod, which holds nothing yet, comes after one that has completed beside
// others that go on: no rank is lost by that, and this one joins like any that others make later (R28).
func (g *gang) comesAfterDone(index int) bool {
	m, last := g.comer(index)
	return m != nil && last != nil && last.reason == rqv1.ClosedCompleted && g.forgone(index)
}

// anyHolds reports whether one of a gang's ranks holds its GPUs that is such.
func (g *gang) anyHolds(such func(*member) bool) bool {
	return slices.ContainsFunc(g.active.between(0, g.active.size), func(m *member) bool {
		return m != nil && m.holds() && such(m)
	})
}

// goesOnBeside reports whether a rank has gone on since an instant, or has been lost and made anew while another's pod
// was there, which came to those that went on then.
func (m *member) goesOnBeside(comes *member, since time.Time) bool {
	return m.had != nil && (!m.had.held.After(since) || m.had.held.After(comes.pod.CreationTimestamp.Time))
}

// lapsesAt returns when what is kept for a rank is given up if its pod is not made; false where it is kept for as long
// as it takes.
func (g *gang) lapsesAt(index int) (time.Time, bool) {
	l, noted := g.lapses[index]
	return l.at, noted
}

// givesUp reports whether no place is kept for a rank any more.
func (g *gang) givesUp(index int) bool { return g.lapses[index].over || g.forgone(index) }

// emptyRanks returns the ranks for which no place is kept any more and no pod has one, in order.
func (g *gang) emptyRanks() (out []int) {
	if len(g.lapses)+len(g.run.Status.Forgone) == 0 {
		return nil
	}
	for index := range g.demand.Pods() {
		if m := g.rankAt(index); (m == nil || !m.placed()) && g.givesUp(index) {
			out = append(out, index)
		}
	}
	return out
}

// belated reports whether a member is of a rank for which nothing is kept: its pod was made too late (R42), or after
// one that has completed.
func (m *member) belated() bool { return !m.part.Spare && m.gang.forgone(m.part.Index) }

// awaitsBelated reports whether a belated rank of a gang has no place.
func (g *gang) awaitsBelated() bool {
	first := g.active.first()
	return first != nil && slices.ContainsFunc(g.active.between(first.part.Index, g.active.size), func(m *member) bool {
		return m != nil && m.stage == unplaced && m.belated()
	})
}

// lookAtForgone notes the ranks for which nothing is kept any more, or is to be.
func (o *observer) lookAtForgone(l *Look, g *gang) {
	note := func(index int) {
		l.Forgone[index] = ""
		if last := g.latest[rank.Part{Index: index}]; last != nil {
			l.Forgone[index] = last.pod
		}
	}
	for i := range g.run.Status.Forgone {
		if index := int(g.run.Status.Forgone[i].Index); g.forgone(index) {
			note(index)
		}
	}
	for _, m := range g.active.between(0, g.active.size) {
		if m != nil && g.late() && g.comesAfterDone(m.part.Index) {
			note(m.part.Index)
		}
	}
	for index, lapse := range g.lapses {
		if m := g.rankAt(index); lapse.over && (m == nil || !m.placed()) { // else its pod came just in time
			note(index)
		}
	}
}
