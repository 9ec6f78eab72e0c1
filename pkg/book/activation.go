package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// activations makes promises to gangs that wait, and carries out those whose turn has come.
type activations struct {
	args       *config.Args
	mu         *guard
	mail       *mailbox
	nodes      *nodeTable
	roster     *roster
	waiting    *waitlist
	cuts       *cutTable
	agenda     *agenda
	seats      *seating
	kept       *keptRooms
	places     *placement
	departures *departures
	candidates *candidates
	rebuffs    *rebuffs
	future     *horizon

	turn int // counts the promises that were worked out
}

// decide draws, if it must, and gives a gang its places: those that are free and those that are going to be. Nobody is
// told before the decision is published. Each decision has an instant of its own, as the API tells it, and is about
// what is held then: what a study has found is decided by if nothing has improved since and it still works, so that
// nothing waits while it is found out once more. It reports false if the gang could not start after all, or not by what
// is on loan alone where it is to.
func (v *activations) decide(studied *study, onLoan bool, now time.Time) bool {
	at := v.agenda.instant(now)
	s := v.future.future(studied.gang, studied.pod, at)
	if s.refusal != nil {
		return false
	}
	if studied.seen == s.seen && studied.promise != nil {
		again := *s
		again.ask, again.promise = studied.ask, studied.promise
		if v.decideBy(&again, onLoan) {
			return true
		}
	}
	s.promise, _ = s.earliest()
	return v.decideBy(s, onLoan)
}

// decideBy decides by what a study has found, and reports whether it has. A date comes with the microsecond that it is
// in, which is how finely decisions are told apart.
func (v *activations) decideBy(s *study, onLoan bool) bool {
	g, p, at := s.gang, s.promise, s.state.Now
	if g.withdrawn || p == nil || !p.Cuts || p.At.Truncate(time.Microsecond).After(at) || p.Returns() != onLoan {
		return false
	}
	a := &Activation{At: at, Promise: p, Conflicts: p.Conflicts, Odds: p.Odds,
		Nonce: resolver.Nonce(v.agenda.key, g.reservation.UID)}
	decided, assignments, ok := forecast.Activate(s.state, s.ask, p.Slice.Domains, a.Conflicts, a.Nonce)
	ok = ok && v.agenda.recordable(g, a, &decided) && v.agenda.withinLimit(g, decided.Cuts, at)
	if ok {
		v.agenda.decided, a.Draws, a.Cuts = at, decided.Draws, decided.Cuts
		if v.nodes.asks {
			v.places.ask(g, g.refusal)
		}
		v.activateGang(g, a, v.seats.inOrder(g.check.laidFor(true), assignments), at)
	}
	return ok
}

// resume completes what a predecessor of this process has published: the same draw, and the same cuts.
func (v *activations) resume(g *gang, pod *corev1.Pod, now time.Time) {
	status := &g.reservation.Status
	if status.ActivatedAt == nil || status.Lottery == nil || v.agenda.key == nil && status.Lottery.Nonce == "" {
		return
	}
	a := &Activation{At: status.ActivatedAt.Time, Conflicts: status.ConflictSet, Odds: status.Lottery.Odds,
		Nonce: resolver.Nonce(v.agenda.key, g.reservation.UID), Draws: status.Lottery.Draws, Cuts: status.Cuts}
	s := v.future.future(g, pod, now)
	state, ask, refusal := s.state, s.ask, s.refusal
	var assignments []plan.Assignment
	switch {
	case refusal != nil:
	case status.Lottery.Nonce != "":
		g.stuck = v.stuckFor(g, a, now)
		freed := v.beingFreed(a, now)
		assignments, refusal = v.completed(g, state, ask, freed)
		if refusal != nil && g.unlay(false, now) {
			s = v.future.future(g, pod, now)
			assignments, refusal = v.completed(g, s.state, s.ask, freed)
		}
	case v.nodes.asks && g.asksBeyond(pod): // what the rules said is not known any more, and nobody has been told of it
		v.fail(g, a, now)
		a.Why = "the scheduler restarted before the draw was published, and checks other scheduling rules again"
		return
	case !v.agenda.committedTo(g):
		refusal = g.notYet("the lottery key has been replaced")
	default:
		// Whom the draw is about was fixed then, though they may have ended since, and others started.
		tenants := v.candidates.tenants(g, latest(now, a.At))
		state.Candidates = func(domains map[string]bool, _ time.Time) []resolver.Candidate {
			return tenants.at(domains, a.At)
		}
		decided, places, ok := forecast.Activate(state, ask, v.nodes.scopeOf(g), a.Conflicts, a.Nonce)
		assignments = places
		if !ok {
			refusal = g.notYet("the Runs that were to be cut are gone")
		}
		a.Draws, a.Cuts = decided.Draws, decided.Cuts
	}
	if refusal != nil {
		v.fail(g, a, now)
		return
	}
	assignments = v.seats.inOrder(g.check.laidFor(false), assignments)
	v.activateGang(g, a, assignments, now)
	v.askAgain(g, pod, assignments, now)
}

// askAgain has other rules be asked about the places of a gang for which others have been told to go: what these rules
// have accepted before is not known any more.
func (v *activations) askAgain(g *gang, pod *corev1.Pod, assignments []plan.Assignment, now time.Time) {
	first := g.active.memberAt(0)
	if g.activation == nil && first != nil && first.stage == assigned && v.places.mustAsk(g, pod, assignments, now) {
		g.check.again = true
		v.mail.activate(first.pod)
	}
}

// resumeAll completes what has been published, in the order in which it was decided.
func (v *activations) resumeAll(now time.Time) {
	var published []*gang
	for g := range v.roster.living {
		if g.run != nil && g.run.Status.Phase == rqv1.RunPending && g.complete() && g.activating() &&
			g.reservation.Status.ActivatedAt != nil {
			published = append(published, g)
		}
	}
	slices.SortFunc(published, func(x, y *gang) int {
		return cmp.Or(x.reservation.Status.ActivatedAt.Compare(y.reservation.Status.ActivatedAt.Time), byAge(x, y))
	})
	for _, g := range published {
		if lead := g.leader(); lead != nil {
			v.resume(g, lead.pod, now)
		}
	}
}

// activateGang has a gang take its places, and wait there until those who are cut have left.
func (v *activations) activateGang(g *gang, a *Activation, assignments []plan.Assignment, now time.Time) {
	date := g.reservation.Spec.EarliestStart.Time
	if g.promise != nil {
		date = g.promise.At
	}
	v.agenda.setPromise(g, nil)
	g.activation = a
	if revealed(g.reservation) {
		g.activation = nil
	} else { // nobody is told that he is safe before it is told who is not
		v.agenda.suspect(g, &forecast.Promise{At: date, Conflicts: a.Conflicts})
	}
	places := v.takePlaces(g, assignments, now)
	v.noteCuts(g, a)
	for _, pod := range v.victims(a) {
		if m := v.roster.members[pod]; m != nil {
			m.awaited = g
		}
		if a.Promise != nil {
			v.seats.held[pod].asked = time.Time{} // if it was to be cut before, that came to nothing
		}
		if !v.departures.overstayed(pod, now) {
			v.seats.await(pod, g)
		}
	}
	for pod, h := range v.seats.waitedFor {
		if places[h.node] && !v.departures.overstayed(pod, now) {
			v.seats.await(pod, g) // it leaves for another, who may have got a place elsewhere after a restart
		}
	}
	if g.awaiting == 0 {
		v.waiting.proceed(g)
	}
	v.mail.reconcile(keyOf(g.run), lane.Cut)
}

// noteCuts remembers whom an activation cuts, also where they hold nothing yet.
func (v *activations) noteCuts(g *gang, a *Activation) {
	g.cuts = nil
	for i := range a.Cuts {
		g.cuts = append(g.cuts, rank.Cut{Cut: a.Cuts[i], Reservation: keyOf(g.reservation), For: keyOf(g.run), At: a.At})
	}
	if g.activation != nil {
		v.cuts.decided[g] = g.cuts
	}
}

// unsay has a gang have nothing more to publish: it is published, or off.
func (v *activations) unsay(g *gang) {
	if g.activation != nil {
		g.activation, g.check.again, g.check.passed = nil, false, nil
		for _, h := range v.seats.waitedFor {
			if slices.Contains(h.awaitedBy, g) {
				h.asked = time.Time{} // whoever is there is told from now on
			}
		}
	}
	delete(v.cuts.decided, g)
}

// letOff has those go on who were cut for a gang and have not been told to go.
func (v *activations) letOff(g *gang) {
	v.unsay(g)
	for i := range g.cuts {
		cut := v.roster.gangs[g.cuts[i].UID]
		if cut == nil {
			continue
		}
		for _, m := range slices.Concat(cut.active.members, cut.spares.members) {
			if m != nil && m.awaited == g {
				m.awaited = nil
			}
		}
	}
	v.resumePlans(g.cuts)
	g.cuts = nil
}

// resumePlans has Runs be planned that were not while they were cut, as some cuts are off.
func (v *activations) resumePlans(off []rank.Cut) {
	for i := range off {
		if g := v.roster.gangs[off[i].UID]; g != nil && g.started() && g.leader() != nil && g.complete() {
			v.waiting.wake(g)
		}
	}
}

// fail ends an activation by which its Run does not start after all, and says what has come between.
func (v *activations) fail(g *gang, a *Activation, now time.Time) {
	a.Failed, a.Cause, a.Why = true, rqv1.CanceledRoomTaken, "GPUs that should be free by now are still in use"
	if len(g.stuck) > 0 {
		a.Cause, a.Why = rqv1.CanceledVictimStayed, g.stuck[0].String()
	}
	if why := v.turnedDown(g); why != "" { // it goes before the other: nobody is cut anew then
		if a.Cause == rqv1.CanceledVictimStayed {
			why += "; and " + a.Why
		}
		a.Cause, a.Why = rqv1.CanceledNodesRejected, why
		v.rebuffs.noteRebuff(g, g.reservation.UID, slices.Collect(maps.Keys(g.turnedBy())))
	}
	g.activation = a
	if !a.returns() {
		g.since = now
	}
	v.mail.reconcile(keyOf(g.run), lane.Cut)
}

// turnedDown says which nodes other scheduling rules keep a gang from, for want of something else than GPUs; empty when
// they do not. GPUs are taken by somebody who came between, and may be free the next time.
func (v *activations) turnedDown(g *gang) string {
	turned := g.turnedBy()
	var nodes []string
	for node, why := range turned {
		if !v.args.GPUResource.NamedIn(why) {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	slices.Sort(nodes)
	return fmt.Sprintf("other scheduling rules rejected %d nodes, such as %s: %s", len(nodes), nodes[0],
		turned[nodes[0]])
}

// completed says where a gang starts once what has been cut for it is free: away from what has been cut for others who
// do not run yet, and from nodes on which something is stuck, if it can.
func (v *activations) completed(g *gang, state forecast.State, ask forecast.Ask,
	freed []resolver.Holding) (found []plan.Assignment, refusal *plan.Refusal) {
	asks := []forecast.Ask{v.aside(g, ask), ask}
	if len(g.stuck) > 0 {
		elsewhere := ask
		elsewhere.Excluded = off(g.stuck, ask.Excluded)
		asks = slices.Insert(asks, 0, v.aside(g, elsewhere), elsewhere)
	}
	for _, ask := range asks {
		found, refusal = forecast.Complete(state, ask, freed)
		if refusal == nil {
			return found, nil
		}
	}
	return nil, refusal
}

// aside returns what a gang asks for, away from the slices of other gangs whose turn has come and who do not run yet:
// what has been cut for them may be free before they have taken it.
func (v *activations) aside(g *gang, ask forecast.Ask) forecast.Ask {
	others, excluded := map[string]bool{}, ask.Excluded
	for other := range v.roster.living {
		if other == g || !other.activating() || other.started() || other.reservation.Spec.IntendedSlice == nil {
			continue
		}
		for _, node := range other.reservation.Spec.IntendedSlice.Nodes {
			others[node] = true
		}
	}
	ask.Excluded = func(node string) bool { return others[node] || excluded != nil && excluded(node) }
	return ask
}

// beingFreed returns what the victims of an activation still hold, and those that others wait for, who have their
// places by now, but for what is stuck.
func (v *activations) beingFreed(a *Activation, now time.Time) []resolver.Holding {
	pods := map[types.UID]bool{}
	for _, pod := range v.victims(a) {
		pods[pod] = true
	}
	var out []resolver.Holding
	for pod, h := range v.seats.held {
		if !h.shard && (pods[pod] || len(h.awaitedBy) > 0) && !v.departures.overstayed(pod, now) {
			out = append(out, h.all())
		}
	}
	return out
}

// victims returns the pods that the cuts of an activation take, as far as they hold GPUs: also those that are gone and
// whose Leases are still open, or whose rooms are kept.
func (v *activations) victims(a *Activation) []types.UID {
	var out []types.UID
	found := map[types.UID]bool{} // a Run that gives back what is on loan may be shrunk besides
	find := func(pod types.UID) {
		if !found[pod] {
			found[pod] = true
			out = append(out, pod)
		}
	}
	for i := range a.Cuts {
		c := &a.Cuts[i]
		g := v.roster.gangs[c.UID]
		if g != nil {
			for _, m := range slices.Concat(g.active.members, g.spares.members) {
				if m == nil || v.seats.held[m.pod.UID] == nil {
					continue
				}
				if taken(g, m.part, c) && v.seats.heldBefore(m, a.At) {
					find(m.pod.UID)
				}
			}
			for _, k := range v.seats.keepings(g) {
				if k.room != nil && taken(g, rank.Part{Index: k.index}, c) && k.since.Before(a.At) {
					find(k.pod)
				}
			}
		}
		for _, l := range v.seats.ofRun[c.UID] {
			if v.roster.members[l.pod] == nil && taken(g, l.part, c) &&
				l.held.Before(a.At) {
				find(l.pod)
			}
		}
	}
	return out
}

// victimsRemain reports whether Runs still hold what the cuts of a Reservation take.
func (v *activations) victimsRemain(r *rqv1.Reservation) bool {
	return r.Status.ActivatedAt != nil &&
		len(v.victims(&Activation{At: r.Status.ActivatedAt.Time, Cuts: r.Status.Cuts})) > 0
}

// stuckFor returns the pods that were to make room for a gang and should be long gone, by name: those that are cut by
// its activation, and those that it was known to wait for.
func (v *activations) stuckFor(g *gang, a *Activation, now time.Time) []Stuck {
	pods := v.victims(a)
	for _, s := range g.stuck {
		if v.seats.held[s.uid] != nil && !slices.Contains(pods, s.uid) {
			pods = append(pods, s.uid)
		}
	}
	return v.departures.stuckAmong(pods, now)
}
