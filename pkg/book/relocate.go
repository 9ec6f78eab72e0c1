package book

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/outage"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// outageOver returns the maintenance that is announced of a member's node, if the member is still there by then.
func (d *drainer) outageOver(m *member, now time.Time) (outage.Window, bool) {
	w := d.fleet.Outage(m.node)
	return w, m.gang.run != nil && w.Shuts(now, m.gang.lastsUntil(now))
}

// mayLeave reports whether the time has come at which a member may leave its node for maintenance.
func (d *drainer) mayLeave(m *member, now time.Time) bool {
	w, shuts := d.outageOver(m, now)
	return shuts && !now.Before(w.LeaveFrom(d.args.NoticePeriod.Duration, m.gang.run.Spec.CheckpointInterval()))
}

// leaves reports whether it has come at which a member leaves its node for maintenance: the last instant for it or, of
// a rank, one right after its work was saved.
func (d *drainer) leaves(m *member, now time.Time) bool {
	notice := d.args.NoticePeriod.Duration
	w, shuts := d.outageOver(m, now)
	switch {
	case !shuts:
		return false
	case !now.Before(w.LeaveBy(notice)):
		return true
	case m.part.Spare:
		return false
	}
	saved, _ := rank.SavedAt(m.gang.run, now)
	if own, _ := rank.SavedAt(m.pod, now); own.After(saved) {
		saved = own
	}
	from := w.LeaveFrom(notice, m.gang.run.Spec.CheckpointInterval())
	return !saved.IsZero() && !saved.Before(from) && now.Sub(saved) <= notice
}

// sparesDue returns the spares that leave their nodes for maintenance: a rank that took the place of one would have to
// move again.
func (d *drainer) sparesDue(g *gang, now time.Time) (out []int) {
	for index, m := range g.spares.between(0, g.spares.size) {
		if m != nil && m.stage == bound && !m.leaving && !g.seats(m.pod.UID) && d.leaves(m, now) {
			out = append(out, index)
		}
	}
	return out
}

// tires reports whether room has been kept for gangDeadline for ranks that leave, since an instant, and they have not:
// others may have it for as long. They may not leave while somebody could evict another, or others are not where they
// are to be.
func (d *drainer) tires(g *gang, due []DrainedRank, since, now time.Time) bool {
	deadline := d.args.GangDeadline.Duration
	if !since.IsZero() && !now.Before(since.Add(deadline)) {
		g.departs.rests = now.Add(deadline)
	}
	if !now.Before(g.departs.rests) {
		return false
	}
	g.drain.Stay = due
	g.drain.StayWhy = fmt.Sprintf("rank %d did not leave node %s within %s while a place was kept for it; other Runs "+
		"may use that place until %s, when it is kept again", due[0].Index, due[0].Node, deadline,
		g.departs.rests.UTC().Format(time.RFC3339))
	return true
}

// isLeaving reports whether a pod of a gang is on its way out, as when that becomes narrower: others wait for it.
func (g *gang) isLeaving(now time.Time) bool {
	for _, s := range [...]*squad{&g.active, &g.spares} {
		for _, m := range s.members {
			if m != nil && m.leaving && m.stage == bound && !m.hangs(now) {
				return true
			}
		}
	}
	return false
}

// relocate finds places for the ranks that leave their nodes for maintenance, and keeps what is free of them. They go
// together: their Run stands still while one of them is away. It reports false when none finds one; they stay.
func (d *drainer) relocate(g *gang, due []DrainedRank, was *Drain, now time.Time) bool {
	until := now.Add(d.args.GangDeadline.Duration)
	if was.Narrower == 0 && slices.Equal(was.Leave, due) && d.keeps(g) && d.spared(g, due, now) {
		g.drain.Leave, g.room.until = due, until
		return true
	}
	places, shape := d.relocation(g, due, now)
	if len(g.drain.Leave) == 0 && g.drain.Narrower == 0 {
		return false
	}
	d.letGo(g)
	d.setAside(g, places, until)
	g.drain.Asking = d.asks(g, places, shape, now)
	if g.drain.Asking {
		g.drain.Leave, g.drain.Narrower = nil, 0
	}
	return true
}

// spared reports whether the places of spares, to which ranks that leave are to go, are still theirs to take.
func (d *drainer) spared(g *gang, due []DrainedRank, now time.Time) bool {
	to := g.inquiry.to
	return len(to) == len(due) && !slices.ContainsFunc(to, func(t destination) bool {
		return t.spare != "" && !d.takesRank(d.roster.members[t.spare], t.rank.Index, true, now)
	})
}

// relocation decides which of some ranks leave, and where to: all of them at the Run's width or, if it is malleable, at
// the widest at which all have a place that are left, or else as many as have one.
func (d *drainer) relocation(g *gang, due []DrainedRank, now time.Time) ([]destination, plan.Demand) {
	fork := plan.NewFork(d.fleet, d.accounts)
	defer fork.Revert()
	d.giveOwn(fork, g, g.demand)
	places, why := d.placesFor(g, g.demand, due, true, now)
	if why == "" {
		g.drain.Leave = due
		return places, g.demand
	}
	steps := g.narrowings()
	least := 1 + sort.Search(steps, func(i int) bool {
		_, _, _, fits := d.narrowed(fork, g, due, 1+i, now)
		return fits
	})
	if least <= steps {
		shape, left, places, _ := d.narrowed(fork, g, due, least, now)
		g.drain.Leave, g.drain.Narrower = left, int32(shape.GPUs())
		return places, shape
	}
	fork.Revert()
	d.giveOwn(fork, g, g.demand)
	g.drain.StayWhy = why
	g.drain.Leave, g.drain.Stay, places = d.mostOf(g, due, now)
	return places, g.demand
}

// narrowed returns the shape of a gang that goes on narrower by some steps, the ranks of those that leave which it has
// still, and where they go, if all of them have a place. The narrower it is the fewer they are, and the more of its own
// it gives back: if they fit at one width they do at any that is narrower.
func (d *drainer) narrowed(fork *plan.Fork, g *gang, due []DrainedRank, steps int,
	now time.Time) (shape plan.Demand, left []DrainedRank, places []destination, fits bool) {
	width := g.demand.Pods() - steps*g.demand.StepPods
	shape = g.full.At(width)
	left = slices.DeleteFunc(slices.Clone(due), func(r DrainedRank) bool { return r.Index >= width })
	fork.Revert()
	d.giveOwn(fork, g, shape)
	places, why := d.placesFor(g, shape, left, true, now)
	return shape, left, places, why == ""
}

// mostOf returns as many of some ranks, which have no place all together, as have one, where to, and those that have
// none. It looks for places of many at once: ranks of one group that one payer pays for are alike, so that none of them
// has a place where one has none.
func (d *drainer) mostOf(g *gang, due []DrainedRank, now time.Time) (leave, stay []DrainedRank, places []destination) {
	type kind struct {
		group int
		payer budget.Key
	}
	kindOf := func(r DrainedRank) kind {
		m := g.active.members[r.Index]
		return kind{m.group(), m.payer.key}
	}
	full := map[kind]bool{}
	var try func(part []DrainedRank)
	try = func(part []DrainedRank) {
		part = slices.DeleteFunc(slices.Clone(part), func(r DrainedRank) bool { return full[kindOf(r)] })
		if len(part) == 0 {
			return
		}
		more, no := d.placesFor(g, g.demand, slices.Concat(leave, part), true, now)
		switch {
		case no == "":
			leave, places = append(leave, part...), more
		case len(part) == 1:
			full[kindOf(part[0])] = true
		default:
			try(part[:len(part)/2])
			try(part[len(part)/2:])
		}
	}
	try(due[:len(due)/2])
	try(due[len(due)/2:])
	stay = slices.DeleteFunc(slices.Clone(due), func(r DrainedRank) bool {
		_, found := slices.BinarySearchFunc(leave, r.Index, func(l DrainedRank, index int) int { return l.Index - index })
		return found
	})
	return leave, stay, places
}

// movedRanks returns the ranks of a running gang whose last pod left its node for maintenance.
func (g *gang) movedRanks() map[int]bool {
	if !g.started() {
		return nil
	}
	out := map[int]bool{}
	for part, last := range g.latest {
		if !part.Spare && last.moved() {
			out[part.Index] = true
		}
	}
	return out
}

// narrowings returns by how many steps a gang may become narrower, as it is.
func (g *gang) narrowings() int {
	if g.demand.StepPods == 0 || g.growing() > 0 {
		return 0
	}
	return max(0, g.demand.Pods()-g.demand.LeastPods) / g.demand.StepPods
}

// giveOwn gives back on a fork what is kept for a gang's ranks, and what its pods hold that are beyond a shape.
func (d *drainer) giveOwn(fork *plan.Fork, g *gang, shape plan.Demand) {
	for _, uid := range g.room.held {
		h := d.seats.held[uid]
		fork.Give(h.node, h.gpus, h.beside)
	}
	for _, s := range [...]*squad{&g.active, &g.spares} {
		for _, m := range s.members {
			if m != nil && m.placed() && !shape.Has(m.part) {
				held := g.holding(m)
				fork.Give(held.Node, held.GPUs, held.Beside)
			}
		}
	}
}

// nextLeave tells when next the time has come to leave a node for maintenance.
func (d *drainer) nextLeave(e *earliest, after time.Time) {
	for _, w := range d.fleet.Planned() {
		if at := w.LeaveBy(d.args.NoticePeriod.Duration); at.After(after) {
			e.by(at)
		}
	}
}

// left returns the nodes for which that time has come after an instant, by another.
func (d *drainer) left(after, by time.Time) map[string]bool {
	out := map[string]bool{}
	for name, w := range d.fleet.Planned() {
		if at := w.LeaveBy(d.args.NoticePeriod.Duration); at.After(after) && !at.After(by) {
			out[name] = true
		}
	}
	return out
}

// clearOut ends the shards on nodes for which that time has come: they get other idle GPUs later.
func (d *drainer) clearOut(places *placement, now time.Time) {
	if !d.fleet.AnyPlanned() {
		return
	}
	for _, node := range slices.Sorted(maps.Keys(d.seats.shards)) {
		for _, pod := range slices.Sorted(maps.Keys(d.seats.shards[node])) {
			if m := d.roster.members[pod]; m != nil && !places.givesWay(pod) && d.leaves(m, now) {
				places.evict(m, rqv1.ClosedMaintenance)
			}
		}
	}
}
