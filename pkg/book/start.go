package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// starter plans gangs that start, and the ranks and spares that running ones lack.
type starter struct {
	accounts *budget.Accounts
	args     *config.Args
	fleet    *topology.Fleet
	mail     *mailbox
	nodes    *nodeTable
	waiting  *waitlist
	cuts     *cutTable
	agenda   *agenda
	seats    *seating
	kept     *keptRooms
	places   *placement

	departures *departures
	candidates *candidates
	turns      *activations
}

// placeNew plans the gang of a pod that has no node, if it is the gang's leader.
func (x *starter) placeNew(m *member, now time.Time) (string, *plan.Refusal) {
	g := m.gang
	switch {
	case g.state() == gangSweeping:
		return "", g.notYet(waitsForIdle)
	case g.state() != gangQueued || g.leader() != m:
		return "", &plan.Refusal{Reason: plan.InsufficientGPUs, Message: waitsForPlan}
	}
	if g.denied() && g.denial.rests {
		g.woken = false
		return "", g.refusal
	}
	if why := x.nodes.anyContradicts(g); why != "" {
		g.woken = false
		return "", x.mismatch(m, why, now)
	}
	x.plan(g, m.pod, now)
	switch {
	case m.stage == unplaced && m.surplus():
		x.mail.activate(x.follow(m)...) // it does not lead them to the barrier itself
		return "", g.notYet(beyondWidth)
	case m.stage == unplaced:
		x.mail.activate(x.follow(m)...) // those of its gang that have places do not wait for it
		return "", g.refusal
	case g.state() == gangClearing:
		return "", g.notYet(whileLeaving)
	}
	return m.node, nil
}

// plan places all missing pods of a gang and assumes the result. Belated ranks and spares of a Run that has started
// come last, each by itself.
func (x *starter) plan(g *gang, pod *corev1.Pod, now time.Time) {
	defer x.kept.lend(g)()
	x.turns.endTakes(g)
	delete(x.seats.roster.classes.awaiting, g)
	x.leaveFull(g)
	x.waiting.stirred = true
	x.waiting.plans++
	g.woken, g.absent, g.tried, g.plan = false, false, x.waiting.epoch, x.waiting.plans
	g.nodeWait = nodeWait{said: g.nodeWait.said}
	g.committed = g.underWay() && (g.committed || g.hasPassed()) // a gang that starts anew passes the barrier as a whole
	var refusal *plan.Refusal
	switch {
	case x.cuts.endsOrShrinks(g):
		refusal = g.notYet("the Run is being cut for another Run; its missing pods are placed after that")
	case !g.started() || g.firstRank() != nil:
		refusal = x.planRanks(g, pod, now)
	}
	awaits := refusal != nil && refusal.Awaits
	others := !awaits && g.late() && g.firstRank() != nil // its other groups are planned before what is placed by itself
	if (refusal == nil || awaits) && g.started() && !others {
		belated, spare := x.planExtras(g, &g.active, pod, now), x.planExtras(g, &g.spares, pod, now)
		refusal = cmp.Or(refusal, belated, spare)
	}
	g.nodeWait.note(refusal)
	if refusal != nil {
		refusal.Grow = !refusal.Spare && !refusal.Belated && g.grows()
		x.waiting.refuse(g, refusal)
		return
	}
	g.refusal = nil
	x.waiting.remove(g)
	if others {
		x.waiting.wake(g)
	}
}

// planAll places the missing ranks of a gang, and those of its other groups where it waits for nodes of one.
func (x *starter) planAll(g *gang, pod *corev1.Pod, now time.Time) *plan.Refusal {
	refusal := x.planGang(g, pod, now)
	if refusal != nil && !g.activating() && g.unlay(false, now) { // else what has been cut for it may not be free yet
		refusal = x.planGang(g, pod, now)
	}
	if refusal != nil {
		refusal = x.planOthers(g, pod, refusal, now)
	}
	return refusal
}

// planGang places all missing pods at once, or none. A gang that starts gets the widest width that fits (R16).
func (x *starter) planGang(g *gang, pod *corev1.Pod, now time.Time) *plan.Refusal {
	if refusal := x.heldUp(g, now); refusal != nil {
		return refusal
	}
	x.places.claimAgain(g)
	if g.asksForSeats() {
		x.places.ask(g, nil)
		return g.notYet("checking other scheduling rules for the places of its spares")
	}
	if x.goes(g) {
		return g.notYet(whileMoving)
	}
	missing, refusal := x.seats.missingOf(g)
	if refusal != nil {
		return refusal
	}
	defer x.seats.spend(g, missing, now)()
	rejected := x.nodes.rejectedAll(g, pod)
	seated, missing := x.takeSeats(g, missing, func(v *vacancy) bool {
		fled := g.fled()
		if v.own { // it stays, whoever else leaves that node
			fled = nil
		}
		return x.usable(g, v, x.nodes.rejecting(g, g.modelOf(rank.Part{Index: v.index}), fled))
	}, now)
	if refusal := x.nodes.astray(g, missing); refusal != nil {
		return x.withoutRoom(g, pod, missing, refusal, now)
	}
	claim := x.agenda.debts.claim(g, g.keptFor(missing), now)
	claim.Most = x.seats.mostBeside(g, claim.Most)
	fits := func(width int) ([]plan.Assignment, *plan.Refusal) {
		d := g.full.At(width)
		within := d.Within(missing)
		if len(within) == 0 {
			return nil, nil // all of them have their nodes
		}
		defer x.paySeats(g, seated, within, now)()
		return x.placeAside(g, d, claim, within, rejected, now)
	}
	least := g.narrowest().Pods()
	most := x.fleet.FreeOf(g.full.Flavor)/g.full.GPUsPerPod + g.active.assigned + g.spares.assigned + len(seated)
	width, assignments, refusal := g.demand.Widest(least, most, fits)
	if refusal != nil {
		return x.otherwise(g, pod, seated, missing, refusal, func() ([]plan.Assignment, *plan.Refusal) {
			return fits(least)
		}, now)
	}
	x.places.resize(g, g.full.At(width))
	assignments = x.seats.besideShards(g.full.Flavor, assignments, func() ([]plan.Assignment, *plan.Refusal) {
		defer x.paySeats(g, seated, missing, now)()
		return x.planWithin(g, g.demand, claim, g.demand.Within(missing), x.agenda.outOfTheWay(g, rejected, now), now)
	})
	x.take(g, pod, seated, x.seats.inOrder(g.check.laidFor(false), assignments), now)
	return nil
}

// heldUp says why a gang is not to be planned yet; nil when it is.
func (x *starter) heldUp(g *gang, now time.Time) *plan.Refusal {
	if !g.started() && !g.committed {
		x.places.resize(g, g.settled())
		if !g.complete() {
			return g.notYet("waiting for the Run's other pods to be created")
		}
	}
	switch {
	case g.rests(now):
		return g.restsInVain()
	case now.Before(g.check.resumes):
		return g.notYet("finding out where its pods can be spread takes longer; it is tried again within seconds")
	case x.standsBack(g, now):
		return g.notYet("Runs ahead of it in line are tried first, because its maxDuration was over")
	}
	return nil
}

// take gives a gang the places that have been planned for it.
func (x *starter) take(g *gang, pod *corev1.Pod, seated, assignments []plan.Assignment, now time.Time) {
	g.planned = true
	g.deadline = now.Add(x.args.GangDeadline.Duration)
	// what is kept for the gang and what it gets would count twice, and shards leave that are in nobody's way
	x.seats.vacatePlanned(g, slices.Concat(seated, assignments))
	if x.places.mustAsk(g, pod, assignments, now) {
		x.places.ask(g, nil)
	}
	x.places.assume(g, slices.Concat(seated, assignments), now)
	x.seats.sit(g, seated)
	g.narrower = 0
}

// otherwise says what becomes of a gang whose missing ranks have no room, at its least width: they go where their pods
// have ended or wait for that (R27), or take the places of others, their group moves, or they do without.
func (x *starter) otherwise(g *gang, pod *corev1.Pod, seated []plan.Assignment, missing []plan.Missing,
	refusal *plan.Refusal, fits func() ([]plan.Assignment, *plan.Refusal), now time.Time) *plan.Refusal {
	if g.started() && g.check.laidFor(false) != nil {
		return refusal // it is planned again without the layout, before it waits or anybody ends for it
	}
	if refusal, waits := x.awaitEnd(g, pod, missing, now); waits {
		return refusal
	}
	if !g.returns && len(g.evictors())+len(g.fled()) > 0 {
		g.returns = true
		defer func() { g.returns = false }()
		return x.planGang(g, pod, now)
	}
	least, claim := g.full.At(g.narrowest().Pods()), x.agenda.debts.claim(g, g.keptFor(missing), now)
	x.nodes.blame(g, pod, refusal, now, func(rejected func(string) bool) bool {
		d, claim := least, claim
		d.Beside, claim.Most = nil, nil
		return plan.Fits(x.fleet, x.accounts, d, claim, d.Within(missing), rejected, now)
	})
	if !g.started() && plan.MayLast(x.fleet, claim) {
		refusal.Bound(plan.LongestThatFits(x.fleet, x.accounts, least, claim, x.nodes.byKind(g, least.Within(missing), false),
			x.nodes.rejectedAll(g, pod), now))
	}
	refusal.Since = g.lastMade(missing, pod)
	x.keepThere(g, missing, now)
	// Nobody ends for it, and no group moves, while a wait may do, or for some of those alone that need it.
	if len(x.awaits(g, missing, now))+len(g.nodeWait.left) > 0 ||
		refusal.Reason == plan.NodesRejected && now.Sub(refusal.Since) < takeRest { // it may pass
		return x.withoutRoom(g, pod, missing, refusal, now)
	}
	if (g.madeLate() || !g.lacksPods(missing)) && x.takeOver(g, seated, missing, fits, now) {
		return nil
	}
	if refusal, moves := x.moveWhole(g, pod, now); moves {
		return refusal
	}
	return x.withoutRoom(g, pod, missing, refusal, now)
}

// takeSeats gives ranks the rooms of the spares that are kept for them, with the payers that they had, and returns the
// ranks that have none, which follow those of their group to their domain. Rooms that a rank cannot use are given up.
func (x *starter) takeSeats(g *gang, missing []plan.Missing, usable func(*vacancy) bool, now time.Time) (
	seated []plan.Assignment, rest []plan.Missing) {
	x.seats.vacate(g, func(v *vacancy) bool {
		return v.seat() && !x.notNow(g, v, now) && !g.comesTo(v) && !usable(v)
	})
	for _, m := range missing {
		at := slices.IndexFunc(g.vacant, func(v vacancy) bool {
			return v.seat() && v.index == m.Index && !x.notNow(g, &v, now)
		})
		domain := ""
		if at >= 0 {
			domain = x.nodes.domainOf(g.vacant[at].node)
		}
		known := m.Domain
		if beside := g.besideOne(seated, m.Part); beside >= 0 && (known == "" || known == unknown) {
			known = seated[beside].Domain // a spare that came when all ranks were gone may be elsewhere than these were
		}
		// A spare was placed in its group's domain, so that it serves when nobody knows any more which that is.
		if m.Spare || at < 0 || known != "" && known != unknown && known != domain &&
			(domain != "" || g.mayBeAstray(&g.vacant[at])) {
			rest = append(rest, m)
			continue
		}
		v := &g.vacant[at]
		seated = append(seated, plan.Assignment{Part: m.Part, Group: g.demand.Group(m.Part), Node: v.node, Domain: domain,
			Payer: v.payer.key, Relation: v.payer.relation})
	}
	g.gather(seated, rest)
	return seated, rest
}

// paySeats has the payers of ranks that take the places of spares be charged for these, instead of the spares' own,
// until what it returns is called: what other ranks are to cost is beside that. Those whose nodes are out of service
// may be paid for elsewhere from what is kept for them there.
func (x *starter) paySeats(g *gang, seated []plan.Assignment, missing []plan.Missing, now time.Time) (back func()) {
	fork := plan.NewFork(x.fleet, x.accounts)
	for _, a := range seated {
		at := slices.IndexFunc(g.vacant, func(v vacancy) bool { return v.seat() && v.index == a.Index })
		if at < 0 {
			continue
		}
		m := *g.active.members[a.Index]
		m.node, m.payer = a.Node, payer{a.Payer, a.Relation}
		fork.Open(charged(g.vacant[at].pod), x.seats.chargeOf(&m, now))
	}
	for i := range g.vacant {
		v := &g.vacant[i]
		_, stays := x.stays(g, v, now)
		if stays && slices.ContainsFunc(missing, func(m plan.Missing) bool { return !m.Spare && m.Index == v.index }) {
			fork.Void(charged(v.pod))
		}
	}
	return fork.Revert
}

// usable reports whether a rank could run where a spare was, at the cost of who is to pay.
func (x *starter) usable(g *gang, v *vacancy, rejected func(string) bool) bool {
	return x.seats.accepts(g, v.node, v.index) && (rejected == nil || !rejected(v.node)) && v.payer.key.Budget != "" &&
		x.seats.holdsInBoth(v.node, func() bool { return x.seats.roomFor(v.node) >= 0 }) &&
		x.accounts.Reaches(v.payer.key, x.nodes.byName[v.node].Labels)
}

// withoutRoom says what becomes of a gang whose missing ranks were refused. Those that wait for the room of pods beyond
// the width get it together, once all of it is there. When there is none to wait for, a running gang is told at which
// width it could go on. A cohort waits for nothing: the gang goes on without it.
func (x *starter) withoutRoom(g *gang, pod *corev1.Pod, missing []plan.Missing, refusal *plan.Refusal,
	now time.Time) *plan.Refusal {
	if refusal, waits := x.awaitEnd(g, pod, missing, now); waits {
		return refusal
	}
	switch {
	case !g.started(), g.grows():
		return refusal
	case x.seats.stillLeaving(g):
		return g.notYet(fmt.Sprintf("%s; pods beyond the width of the Run are leaving", refusal.Message))
	case g.lacksPods(missing) && !g.madeLate() && g.movesOn(missing):
		return g.notYet(untilMade)
	case g.lacksPods(missing) && !g.madeLate() && !g.apart:
		g.apart = true
		defer func() { g.apart = false }()
		return x.planGang(g, pod, now)
	case slices.ContainsFunc(g.vacant, func(v vacancy) bool { return v.index == anyRank }):
		x.seats.vacate(g, func(v *vacancy) bool { return v.index == anyRank })
		return x.planGang(g, pod, now)
	}
	g.narrower = x.widthWithout(g, x.nodes.byKind(g, missing, false), x.nodes.rejectedAll(g, pod), now)
	return cmp.Or(x.awaitNodes(g, pod, missing, refusal, now), refusal)
}

// placeAside plans a gang where no Reservation intends to be and no node is suspect, and elsewhere when it does not fit
// there: one that only grows stays out of Reservations' way, and any had rather be on suspect nodes than nowhere.
func (x *starter) placeAside(g *gang, d plan.Demand, claim plan.Claim, missing []plan.Missing,
	excluded func(string) bool, now time.Time) (assignments []plan.Assignment, refusal *plan.Refusal) {
	aside := x.agenda.outOfTheWay(g, excluded, now)
	tries := []func(string) bool{aside}
	if len(x.nodes.suspects) > 0 {
		tries = []func(string) bool{x.nodes.unsuspected(aside, now), aside}
	}
	if !g.grows() && len(x.agenda.intended) > 0 {
		if len(x.nodes.suspects) > 0 {
			tries[1] = x.nodes.unsuspected(excluded, now)
		}
		tries = append(tries, excluded)
	}
	for _, rejected := range tries {
		assignments, refusal = x.planWithin(g, d, claim, missing, rejected, now)
		if refusal == nil {
			break
		}
	}
	return assignments, refusal
}

// planWithin plans a gang where what its pods share reaches all of them.
func (x *starter) planWithin(g *gang, d plan.Demand, claim plan.Claim, missing []plan.Missing,
	rejected func(string) bool, now time.Time) ([]plan.Assignment, *plan.Refusal) {
	missing = x.nodes.byKind(g, missing, false)
	var first *plan.Refusal
	for _, without := range within(g.check.reaches, rejected) {
		assignments, refusal := plan.Gang(x.fleet, x.accounts, d, claim, missing, without, now)
		if refusal == nil {
			return assignments, nil
		}
		first = cmp.Or(first, refusal)
	}
	return nil, first
}

func (x *starter) follow(m *member) []*corev1.Pod {
	if !m.gang.planned {
		return nil
	}
	m.gang.planned = false
	var out []*corev1.Pod
	for other := range m.gang.all() {
		if other != m && !other.standIn && other.stage >= assigned && other.stage < bound && other.stage != reserved {
			out = append(out, other.pod)
		}
	}
	return out
}
