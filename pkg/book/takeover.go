package book

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// takeRest is how long a rank waits for free nodes that other scheduling rules have turned down before it takes those
// of others: their causes may pass.
const takeRest = 10 * time.Second

// lastMade returns when the last pod of some missing ranks was made, or that of the one that plans.
func (g *gang) lastMade(missing []plan.Missing, pod *corev1.Pod) (last time.Time) {
	for _, m := range missing {
		if m.Spare {
			continue
		}
		made := pod
		if there := g.rankAt(m.Index); there != nil {
			made = there.pod
		}
		last = latest(last, made.CreationTimestamp.Time)
	}
	return last
}

// mayTakeOver reports whether the ranks that a gang has lost may take GPUs of its owner's other Runs: it runs, and
// neither a spare, nor pods beyond its own width, nor where a rank has been itself would do.
func (x *starter) mayTakeOver(g *gang, missing []plan.Missing, now time.Time) bool {
	if !g.started() || g.grows() || x.seats.stillLeaving(g) {
		return false
	}
	if end, bounded := g.endsAt(now); bounded && !end.After(now.Add(x.args.NoticePeriod.Duration)) {
		return false // it is over before they have left
	}
	if slices.ContainsFunc(g.vacant, func(v vacancy) bool { return g.lastResort(&v) || v.index == anyRank }) {
		return false
	}
	return !slices.ContainsFunc(missing, func(m plan.Missing) bool { return x.standsBy(g, m) || g.diedItself(m) })
}

// diedItself reports whether a missing rank is started again after its program died: nobody is to end for that.
func (g *gang) diedItself(m plan.Missing) bool {
	if m.Spare || g.rankAt(m.Index) == nil {
		return false
	}
	r, made := rank.ReplacementOf(g.rankAt(m.Index).pod)
	return made && r.After != ""
}

// standsBy reports whether a spare of a rank's group could make room for it.
func (x *starter) standsBy(g *gang, m plan.Missing) bool {
	return slices.ContainsFunc(g.spares.between(0, g.spares.size), func(spare *member) bool {
		return spare != nil && spare.group() == g.demand.Group(m.Part) && x.seats.standsBy(spare, g.indexOf(m.Part))
	})
}

// takeOver gives ranks that have no room the places of pods of its owner's Runs of lower priority, and has the gang
// wait until these have left. Nobody is cut where such pods are leaving already. It reports false where that would not
// do.
func (x *starter) takeOver(g *gang, seated []plan.Assignment, missing []plan.Missing,
	fits func() ([]plan.Assignment, *plan.Refusal), now time.Time) bool {
	if !x.mayTakeOver(g, missing, now) {
		return false
	}
	at := x.agenda.instant(now)
	leaving, yielders := x.givers(g, missing, at, now)
	if len(leaving)+len(yielders) == 0 {
		return false
	}
	fork := plan.NewFork(x.fleet, x.accounts)
	defer fork.Revert()
	x.freeLeaving(fork, leaving)
	room := &forkedRoom{fork: fork, fits: func() bool { _, refusal := fits(); return refusal == nil }}
	cuts, found := resolver.Yield(room, yielders)
	if !found {
		return false
	}
	candidates := make([]resolver.Candidate, len(yielders))
	for i := range yielders {
		candidates[i] = yielders[i].Candidate
	}
	room.Free(resolver.Freed(cuts, candidates))
	assignments, refusal := fits()
	if refusal != nil {
		return false
	}
	fork.Revert()
	taken := leaving
	if len(cuts) > 0 {
		x.agenda.stamped(at)
		x.cuts.forRanks[g] = takesOf(g, cuts, at)
		taken = append(taken, x.turns.victims(&Activation{At: at, Cuts: cuts})...)
	}
	x.takeRoom(g, slices.Concat(seated, assignments), now)
	x.holdLate(g, assignments, now)
	x.seats.sit(g, seated)
	x.awaitAll(g, assignments, taken, now)
	return true
}

// givers returns the pods that are leaving already and the Runs that may give GPUs to missing ranks besides.
func (x *starter) givers(g *gang, missing []plan.Missing, at, now time.Time) ([]types.UID, []resolver.Yielder) {
	leaving := x.leaving(g, now)
	if g.hasTaken(missing) {
		return leaving, nil
	}
	return leaving, x.yielders(g, missing, leaving, at)
}

// takeRoom gives ranks their places, some of which are not free yet. Other rules are asked first.
func (x *starter) takeRoom(g *gang, assignments []plan.Assignment, now time.Time) {
	g.planned, g.deadline, g.narrower = true, time.Time{}, 0
	x.seats.vacatePlanned(g, assignments)
	if x.nodes.asks {
		x.places.ask(g, g.refusal)
	}
	x.places.assume(g, assignments, now)
}

// awaitAll has a gang wait for those of some pods that are where it has places, and the Runs looked at that are cut.
func (x *starter) awaitAll(g *gang, assignments []plan.Assignment, pods []types.UID, now time.Time) {
	on := map[string]bool{}
	for i := range assignments {
		on[assignments[i].Node] = true
	}
	for _, uid := range pods {
		h := x.seats.held[uid]
		if m := x.seats.roster.members[uid]; m != nil && x.cuts.takesFrom(g, m) {
			m.awaited = g
		}
		h.asked = time.Time{}
		if on[h.node] && !x.departures.overstayed(uid, now) {
			x.seats.await(uid, g)
		}
	}
	if !g.check.pending {
		x.tellTaken(g)
	}
	if g.awaiting == 0 {
		x.waiting.proceed(g)
	}
}

// hasTaken reports whether others have been told to go for one of some ranks since that was lost. If kube-scheduler
// refuses it where they were, it waits as any that has no room: nobody is to end one Run after the other.
func (g *gang) hasTaken(missing []plan.Missing) bool {
	return slices.ContainsFunc(missing, func(m plan.Missing) bool { return !m.Spare && g.took[m.Index] })
}

// tellTaken has the Runs looked at that give GPUs to a gang's lost ranks.
func (x *starter) tellTaken(g *gang) {
	if len(x.cuts.forRanks[g]) > 0 {
		for _, m := range g.active.between(0, g.active.size) {
			if m != nil && m.stage == assigned {
				g.took[m.part.Index] = true
			}
		}
	}
	for i := range x.cuts.forRanks[g] {
		x.mail.reconcile(named(x.cuts.forRanks[g][i].Run), lane.Cut)
	}
}

// leaving returns pods that are leaving already and whose GPUs nobody else waits for: anybody's that are gone within
// the notice period, and those of its owner's Runs of lower priority, since who took over from another process goes on
// with what that had begun.
func (x *starter) leaving(g *gang, now time.Time) []types.UID {
	nodes := map[string]bool{}
	for name := range x.nodes.ofFlavor[g.full.Flavor] {
		nodes[name] = true
	}
	return slices.DeleteFunc(x.departures.leavingOn(nodes, now), func(uid types.UID) bool {
		m := x.seats.roster.members[uid]
		if m == nil || m.gang == g || len(x.seats.held[uid].awaitedBy) > 0 || m.gang.opportunistic() {
			return true
		}
		by := x.seats.toldToGo(uid)
		soon := !by.IsZero() && !by.After(now.Add(x.args.NoticePeriod.Duration))
		return !soon && (m.gang.run == nil || !x.seats.roster.priorities.yieldsTo(m.gang.run, g.run))
	})
}

// yielders returns the Runs that may give GPUs to a gang's lost ranks, by name: those of its owner that run, have a
// lower priority and are neither being cut for anybody, nor over. What leaves anyway is not theirs to give.
func (x *starter) yielders(g *gang, missing []plan.Missing, leaving []types.UID, at time.Time) []resolver.Yielder {
	goes := map[types.UID]bool{}
	for _, uid := range leaving {
		goes[uid] = true
	}
	roster, domains := x.seats.roster, x.domainsFor(g.full.Flavor, missing)
	var out []resolver.Yielder
	for other := range roster.living {
		if other == g || other.shape != nil || !other.startedBefore(at) || other.opportunistic() ||
			other.full.Flavor != g.full.Flavor || !roster.priorities.yieldsTo(other.run, g.run) ||
			x.cuts.endsOrShrinks(other) || other.suspended() || other.leaves(goes) {
			continue
		}
		if end, bounded := other.endsAt(at); bounded && !end.After(at) {
			continue
		}
		one := x.candidates.tenant(other, g, at)
		one.draws = true // none is drawn: it is their owner's order, whoever may be drawn for others (R44)
		one.active, _ = x.candidates.occupants(nil, other, &other.active, at)
		one.active = x.candidates.withRooms(one.active, other)
		one.spares, _ = x.candidates.occupants(nil, other, &other.spares, at)
		if c, holds := one.within(domains, at, at); holds {
			out = append(out, resolver.Yielder{Candidate: c, Priority: roster.priorities.of(other.run).Value,
				Started: one.started})
		}
	}
	slices.SortFunc(out, func(x, y resolver.Yielder) int {
		return cmp.Or(strings.Compare(x.Run.Namespace, y.Run.Namespace), strings.Compare(x.Run.Name, y.Run.Name))
	})
	return out
}

// leaves reports whether one of some pods is the gang's.
func (g *gang) leaves(pods map[types.UID]bool) bool {
	return slices.ContainsFunc(slices.Concat(g.active.members, g.spares.members), func(m *member) bool {
		return m != nil && pods[m.pod.UID]
	})
}

// domainsFor returns the fabric domains that missing ranks may be in.
func (x *starter) domainsFor(flavor string, missing []plan.Missing) map[string]bool {
	out, anywhere := map[string]bool{}, false
	for i := range missing {
		out[missing[i].Domain] = true
		anywhere = anywhere || missing[i].Domain == ""
	}
	for name := range x.nodes.ofFlavor[flavor] {
		if anywhere {
			out[x.nodes.domainOf(name)] = true
		}
	}
	return out
}

// takesOf returns what other Runs give a gang's lost ranks.
func takesOf(g *gang, cuts []rqv1.Cut, at time.Time) []rank.Cut {
	out := make([]rank.Cut, len(cuts))
	for i := range cuts {
		out[i] = rank.Cut{Cut: cuts[i], For: keyOf(g.run), At: at, ForRank: true}
	}
	return out
}

// endTakes ends what others give a gang's lost ranks: it has it, or does without. Those who have not been told to go
// are planned as before.
func (v *activations) endTakes(g *gang) {
	taken := v.cuts.forRanks[g]
	delete(v.cuts.forRanks, g)
	for i := range taken {
		other := v.roster.gangs[taken[i].UID]
		if other == nil {
			continue
		}
		for _, m := range slices.Concat(other.active.members, other.spares.members) {
			if m != nil && m.awaited == g {
				m.awaited = nil
			}
		}
	}
	v.resumePlans(taken)
}

// dropTaken ends what has been given.
func (v *activations) dropTaken() {
	var done []*gang
	for g := range v.cuts.forRanks {
		if g.awaiting == 0 {
			done = append(done, g)
		}
	}
	slices.SortFunc(done, byAge)
	for _, g := range done {
		v.endTakes(g)
	}
}

// forkedRoom is what lost ranks find on a fork of the fleet.
type forkedRoom struct {
	fork *plan.Fork
	fits func() bool
}

// Free gives back what is held.
func (r *forkedRoom) Free(holds []resolver.Holding) {
	for _, h := range holds {
		r.fork.Give(h.Node, h.GPUs, h.Beside)
	}
}

// Hold takes it again.
func (r *forkedRoom) Hold(holds []resolver.Holding) {
	for _, h := range holds {
		r.fork.Take(h.Node, h.GPUs, h.Beside)
	}
}

// Fits reports whether all of the ranks find a place.
func (r *forkedRoom) Fits() bool { return r.fits() }
