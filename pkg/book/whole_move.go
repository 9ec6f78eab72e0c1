package book

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// staysTogether reports whether ranks of one scope lie in one domain.
func (g *gang) staysTogether() bool { return g.demand.Confined || g.demand.OneDomain }

// scopeOf returns the scope of a part.
func (g *gang) scopeOf(part rank.Part) int { return g.scope(&member{gang: g, part: part}) }

// settledScopes returns the scopes of which a pod has a place.
func (g *gang) settledScopes() map[int]bool {
	out := map[int]bool{}
	for m := range g.all() {
		if m.placed() {
			out[g.scope(m)] = true
		}
	}
	return out
}

// comesWhole reports whether a rank of a running gang is planned before others have made its pod, as somebody goes on
// paying for it: nothing of its group has a place, so that a domain is looked for in which all of it has room.
func (g *gang) comesWhole(index int, settled map[int]bool) bool {
	_, expected := g.kept[index]
	return expected && g.late() && g.staysTogether() && !g.apart && g.growing() == 0 &&
		!settled[g.scopeOf(rank.Part{Index: index})]
}

// lacksPods reports whether one of some missing ranks has no pod.
func (g *gang) lacksPods(missing []plan.Missing) bool {
	return slices.ContainsFunc(missing, func(m plan.Missing) bool { return !m.Spare && g.rankAt(m.Index) == nil })
}

// wholeMove is a group of others' pods that may go on in another domain.
type wholeMove struct {
	scope int
	ranks []plan.Missing // free to go to any domain
	kept  plan.Kept
	// leave are its pods that run, and keeps says that places are kept for its ranks.
	leave []*member
	keeps bool
	// comes says that its pods are there, or are made once some of them have places.
	comes bool
}

// moveWhole has a group of others' pods which finds no room for all of its ranks in its domain go to another that has
// room for all (R42): free GPUs first, then those of its owner's Runs of lower priority. What is kept for it is given
// up, and it is planned as one that may go anywhere, once those of its pods are gone that run: until then the free
// GPUs are kept for it. It reports false where that would not do.
func (x *starter) moveWhole(g *gang, pod *corev1.Pod, now time.Time) (*plan.Refusal, bool) {
	fork := plan.NewFork(x.fleet, x.accounts)
	move := x.wholeMoveOf(g, fork)
	var places []plan.Assignment
	found := false
	if move != nil {
		places, found = x.fitsElsewhere(g, pod, move, fork, now)
	}
	fork.Revert()
	if !found {
		return nil, false
	}
	x.seats.vacate(g, func(v *vacancy) bool {
		if !g.keepsFor(v, move.scope) {
			return false
		}
		if charge, ok := x.accounts.Charge(charged(v.pod)); ok && v.own {
			g.keptBy(v.index, charge)
		}
		return true
	})
	if len(move.leave) == 0 {
		return x.planGang(g, pod, now), true
	}
	x.sendOff(g, move, places, now)
	return g.notYet(whileMoving), true
}

// Why a rank waits whose group goes on elsewhere.
const (
	whileMoving = "its domain has no room for its group, which moves to another domain once its other pods are gone"
	untilMade   = "its whole group moves to another domain, once its controller has created its other pods again"
)

// movesOn reports whether one of some missing ranks waits since its group has left its domain.
func (g *gang) movesOn(missing []plan.Missing) bool {
	return slices.ContainsFunc(missing, func(m plan.Missing) bool { return !m.Spare && g.moved[m.Index] })
}

// nudge has a gang planned anew that has waited for others of its own pods: those have gone, or come no more.
func (w *waitlist) nudge(g *gang) {
	waits := g.run != nil && g.late() && g.refusal != nil && g.refusal.Reason == plan.NotYet
	if waits && g.complete() && g.leader() != nil {
		w.wake(g)
	}
}

// sendOff has the pods of a group leave that moves, and keeps free places for it.
func (x *starter) sendOff(g *gang, move *wholeMove, places []plan.Assignment, now time.Time) {
	if g.moving == nil {
		g.moving, g.moved = map[types.UID]bool{}, map[int]bool{}
	}
	for _, m := range move.leave {
		g.moving[m.pod.UID] = true
	}
	for _, m := range move.ranks {
		g.moved[m.Index] = true
	}
	rooms := make([]resolver.Holding, len(places))
	for i, a := range places {
		rooms[i] = resolver.Holding{Node: a.Node, GPUs: g.demand.GPUsPerPod, Beside: a.Beside}
	}
	if len(rooms) > 0 {
		x.kept.keepFor(g, rooms, now.Add(x.args.GangDeadline.Duration))
		g.room.moves = true
	}
	x.mail.reconcile(keyOf(g.run), lane.Cut)
}

// keepsFor reports whether a place is kept for a rank of a scope.
func (g *gang) keepsFor(v *vacancy, scope int) bool {
	return v.seat() && v.index != anyRank && g.scopeOf(rank.Part{Index: v.index}) == scope
}

// wholeMoveOf returns the group of the rank that leads, if it may move: all that it holds are the places that are kept
// for its ranks, and those of ranks that run, which are given back on a fork, with their money. It returns nil for one
// that may not.
func (x *starter) wholeMoveOf(g *gang, fork *plan.Fork) *wholeMove {
	lead := g.firstRank()
	if lead == nil || !g.late() || !g.staysTogether() || g.growing() > 0 || g.apart || x.clings(g, g.scope(lead)) {
		return nil
	}
	move := &wholeMove{scope: g.scope(lead), kept: plan.Kept{}, comes: true}
	paid := map[int]budget.Charge{}
	for i := range g.vacant {
		v := &g.vacant[i]
		if !g.keepsFor(v, move.scope) {
			continue
		}
		move.keeps = true
		h := x.seats.held[v.pod]
		fork.Give(h.node, h.gpus, h.beside)
		if charge, ok := fork.Void(charged(v.pod)); ok && v.own {
			paid[v.index] = charge
		}
	}
	for index := range g.demand.Pods() {
		m, part := g.rankAt(index), rank.Part{Index: index}
		_, expected := g.kept[index]
		if g.scopeOf(part) != move.scope || m == nil && !expected && !g.hasPlace(index) ||
			m != nil && (m.succeeded() || m.stays()) {
			continue // no pod comes in its place, as it seems
		}
		switch {
		case m != nil && (m.leaving || m.stage == finished):
			return nil // it is on its way out: another comes in its place
		case m != nil && m.placed():
			held := g.holding(m)
			fork.Give(held.Node, held.GPUs, held.Beside)
			if charge, ok := fork.Void(x.seats.leaseOf(m.pod).String()); ok {
				paid[index] = charge
			}
			move.leave = append(move.leave, m)
		case g.moved[index] && m != nil:
			return nil // nobody else is to go for it again
		}
		move.comes = move.comes && (m != nil || g.madeLate())
		move.ranks = append(move.ranks, plan.Missing{Part: part})
		fork.Void(charged(moneyOf(g, index)))
		move.pays(g, index, paid)
	}
	if !move.keeps && len(move.leave) == 0 {
		return nil
	}
	return move
}

// pays notes who has paid for a rank, and goes on paying.
func (w *wholeMove) pays(g *gang, index int, paid map[int]budget.Charge) {
	charge, ok := paid[index]
	if !ok {
		charge, ok = g.paidBefore(index)
	}
	if ok && charge.Owner == g.run.Spec.Owner {
		w.kept[charge.Payer] = budget.Kept{Pods: w.kept[charge.Payer].Pods + 1, Relation: charge.Relation}
	}
}

// succeeded reports whether the member has done its work.
func (m *member) succeeded() bool {
	return m.stage == finished && m.pod.Status.Phase == corev1.PodSucceeded
}

// clings reports whether a group cannot be told to leave its domain: a spare of it is there, or a pod that is about to
// be bound, is cut, or is going already, or that is gone and whose Lease is open, or may be.
func (x *starter) clings(g *gang, scope int) bool {
	for m := range g.all() {
		if g.scope(m) == scope && m.placed() &&
			(m.part.Spare || m.stage != bound || m.leaving || m.doomed() || g.moving[m.pod.UID]) {
			return true
		}
	}
	for _, h := range x.seats.held {
		if h.writing == g.run.UID {
			return true
		}
	}
	return x.seats.stays(g, scope)
}

// stays reports whether a pod of a scope that has no place has an open Lease, but for one that has vanished.
func (s *seating) stays(g *gang, scope int) bool {
	for _, l := range s.ofRun[g.run.UID] {
		m := s.roster.members[l.pod]
		if g.scopeOf(l.part) == scope && (m == nil || !m.placed()) && !s.held[l.pod].outlived() {
			return true
		}
	}
	return false
}

// goes reports whether the group of the rank that leads is leaving its domain: pods of it are there, or their Leases
// are open. Until they are closed nothing of it is to be in another.
func (x *starter) goes(g *gang) bool {
	lead := g.firstRank()
	if lead == nil || !g.late() || !g.staysTogether() {
		return false
	}
	scope := g.scope(lead)
	for m := range g.all() {
		if g.moving[m.pod.UID] && m.placed() && g.scope(m) == scope {
			return true
		}
	}
	return !g.settledScopes()[scope] && x.seats.stays(g, scope)
}

// fitsElsewhere reports whether a group that moves has room for all of its ranks together, on a fork on which what it
// holds is free: as it stands, with the places, or in those of its owner's Runs of lower priority, of which nobody is
// to end for pods that may not come.
func (x *starter) fitsElsewhere(g *gang, pod *corev1.Pod, move *wholeMove, fork *plan.Fork,
	now time.Time) ([]plan.Assignment, bool) {
	rejected, claim := x.nodes.rejectedAll(g, pod), g.claim(move.kept)
	plans := func() ([]plan.Assignment, *plan.Refusal) {
		return x.placeAside(g, g.demand, claim, move.ranks, rejected, now)
	}
	if places, refusal := plans(); refusal == nil {
		return places, true
	}
	if !move.comes || !x.mayTakeOver(g, move.ranks, now) {
		return nil, false
	}
	leaving, yielders := x.givers(g, move.ranks, x.agenda.instant(now), now)
	x.freeLeaving(fork, leaving)
	_, found := resolver.Yield(&forkedRoom{fork: fork, fits: func() bool {
		_, refusal := plans()
		return refusal == nil
	}}, yielders)
	return nil, found && len(leaving)+len(yielders) > 0
}

// freeLeaving has what pods hold be free on a fork.
func (x *starter) freeLeaving(fork *plan.Fork, leaving []types.UID) {
	for _, uid := range leaving {
		held := x.seats.held[uid].all()
		fork.Give(held.Node, held.GPUs, held.Beside)
	}
}

// holdLate keeps the places for ranks whose pods are made later that others are told to leave for them.
func (x *starter) holdLate(g *gang, places []plan.Assignment, now time.Time) {
	for _, a := range places {
		if g.late() && !a.Spare && g.rankAt(a.Index) == nil && !g.hasOwn(a.Index) {
			x.places.keepPlace(g, a, now)
		}
	}
}

// leaveFull gives up the places that are kept for such ranks where others have stayed.
func (x *starter) leaveFull(g *gang) {
	x.seats.vacate(g, func(v *vacancy) bool { return g.comesTo(v) && x.nodes.freeOn(v.node) < 0 })
}
