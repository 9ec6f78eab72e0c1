package book

import (
	"fmt"
	"slices"
	"sync"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// grower makes Runs wider that are malleable (R23).
type grower struct {
	args     *config.Args
	accounts *budget.Accounts
	fleet    *topology.Fleet
	mail     *mailbox
	nodes    *nodeTable
	roster   *roster
	waiting  *waitlist
	cuts     *cutTable
	agenda   *agenda
	seats    *seating
}

// nextTry tells when a Run that rested at the last sweep may be tried again, as far as that may end otherwise than the
// last time.
func (e *grower) nextTry(next *earliest, swept time.Time) {
	for g := range e.roster.classes.elastic {
		if g.growth.rest.After(swept) && g.growth.looked != e.improvements() && g.shape == nil && g.nextWidth() > 0 {
			next.by(g.growth.rest)
		}
	}
}

// cohort plans the pods that a gang lacks at a width, spares and all; nil when they do not fit or nobody pays, and
// which of the two.
func (e *grower) cohort(g *gang, to int32, now time.Time) ([]plan.Assignment, rqv1.WidthLacks) {
	domains, refusal := e.nodes.domainsOf(g)
	if refusal != nil {
		return nil, ""
	}
	d := g.full.At(int(to) / g.full.GPUsPerPod)
	missing := g.lacks(d, domains)
	if len(missing) == 0 {
		return nil, ""
	}
	excluded := e.agenda.unintended(e.nodes.rejectedAll(g, g.model()), now)
	claim := g.claim(nil)
	claim.Owed, claim.Leaves = e.agenda.debts.keeps(g, true, now), 0
	assignments, refusal := plan.Gang(e.fleet, e.accounts, d, claim, e.nodes.byKind(g, missing, false), excluded, now)
	switch {
	case refusal == nil:
		return assignments, ""
	case refusal.AboutMoney():
		return nil, rqv1.LacksMoney
	}
	return nil, rqv1.LacksGPUs
}

// lack notes why a gang does not grow, and has that be told.
func (e *grower) lack(g *gang, what rqv1.WidthLacks) {
	if g.nextWidth() > 0 && g.growthLacks() != what {
		e.mail.reconcile(keyOf(g.run), lane.Date)
	}
	g.growth.lacks, g.growth.known = what, true
}

// growthLacks returns why a gang does not grow: as its status says, until this process has looked.
func (g *gang) growthLacks() rqv1.WidthLacks {
	switch {
	case !g.started() || g.nextWidth() == 0 || g.growing() > 0:
		return ""
	case !g.growth.known:
		return g.run.Status.Width.Lacks
	}
	return g.growth.lacks
}

// earmark takes the room and the money of a cohort's places on a fork, so that no two Runs are let grow into the same.
func (e *grower) earmark(fork *plan.Fork, g *gang, places []plan.Assignment, now time.Time) {
	for i, a := range places {
		m := &member{gang: g, part: a.Part, payer: payer{a.Payer, a.Relation}}
		fork.Open(fmt.Sprintf("growth/%s/%d", g.run.UID, i), e.seats.chargeOf(m, now))
		fork.Take(a.Node, g.full.GPUsPerPod, a.Beside)
	}
}

// letGrow lets a gang grow to a width if its cohort fits; otherwise it rests.
func (e *grower) letGrow(g *gang, was, to int32, fits bool, now time.Time) {
	if !fits {
		g.growth.looked, g.growth.rest = e.improvements(), now.Add(growthRest)
		return
	}
	g.growth.to = to
	if was != to {
		e.mail.reconcile(keyOf(g.run), lane.Begin)
	}
}

// mayGrow reports whether it is worth looking if a gang's next cohort fits. One for which that was decided before, and
// whose status does not say so yet, is looked at again.
func (e *grower) mayGrow(g *gang, was int32, now time.Time) bool {
	to := g.nextWidth()
	rests := now.Before(g.growth.rest) || g.growth.looked == e.improvements()
	return to > 0 && (was == to || !rests) && e.steady(g) && !e.cuts.isCut(g) && e.hasRoom(g)
}

// hasRoom reports whether so many GPUs are free as a gang grows by.
func (e *grower) hasRoom(g *gang) bool {
	return e.fleet.FreeOf(g.full.Flavor) >= g.full.StepPods*g.full.GPUsPerPod
}

// takenBack returns the flavors of which a Run starts within the lead by what others have on loan: nobody grows into
// that again meanwhile.
func (e *grower) takenBack(now time.Time) map[string]bool {
	out, near := map[string]bool{}, now.Add(e.args.ReservationLead.Duration)
	for g := range e.roster.living {
		if g.run == nil || g.started() {
			continue
		}
		if g.promise != nil && g.promise.Returns() && !g.promise.At.After(near) ||
			g.activating() && returned(&g.reservation.Status) ||
			g.activation != nil && g.activation.returns() {
			out[g.full.Flavor] = true
		}
	}
	return out
}

// improvements counts what may let a gang grow that could not before.
func (e *grower) improvements() int64 { return e.waiting.epoch + e.agenda.vacated }

// steady reports whether a gang has exactly the active pods of its width, all of them bound to nodes that stand, or
// done, or not to come any more, and no spare that it had at a wider one.
func (e *grower) steady(g *gang) bool {
	return g.active.present == g.active.within && (g.active.whole() || g.late() && !g.replaces()) &&
		g.spares.present == g.spares.within && len(g.vacant) == 0 &&
		e.settled(g)
}

// settled reports whether nothing is awaited for any rank.
func (e *grower) settled(g *gang) bool {
	for index := range g.active.size {
		if !e.settledAt(g, index) {
			return false
		}
	}
	return true
}

// settledAt reports whether nothing is awaited for a rank: its pod runs, is done, or is not to come any more.
func (e *grower) settledAt(g *gang, index int) bool {
	switch m := g.rankAt(index); {
	case m == nil || m.standIn:
		return g.late() && (g.completed(index) || g.forgone(index))
	case m.stage == finished:
		return g.late() && (m.succeeded() || m.stays())
	default:
		return m.stage == bound && !m.doomed() && e.nodes.stands(m.node)
	}
}

// regard notes what has become of a gang's growth since it grew to a width. A cohort passes the barrier by itself; one
// that was given up leaves nothing behind.
func (e *grower) regard(g *gang, grew int32, edited bool) {
	to := g.growing()
	if edited {
		g.growth.looked, g.growth.rest, g.growth.fails = 0, time.Time{}, 0
	}
	if w := g.run.Status.Width; w != nil {
		g.growth.shrunk = !edited && (g.growth.shrunk || w.Granted < g.growth.granted)
		g.growth.granted = w.Granted
	}
	if to != grew && to > 0 {
		g.growth.to, g.committed = 0, false
	}
	if grew == 0 || to > 0 {
		return
	}
	g.growth.failed = g.started() && g.settled().GPUs() < int(grew)
	if !g.growth.failed {
		g.growth.fails = 0
	}
	g.readmitAll() // it may go there by the time at which it grows again
	if g.refusal != nil && g.refusal.Grow {
		if g.growth.failed && g.refusal.Reason == plan.NodesRejected {
			e.lack(g, rqv1.LacksNodes)
		}
		g.refusal, g.woken = nil, false
		e.waiting.remove(g)
		if g.leader() != nil {
			e.waiting.wake(g) // spares may be missing besides
		}
	}
}

// growthRest is how long a gang that could not grow, or has become narrower, is left alone, twice as long, mostRests
// times, each time that a cohort is given up: other rules may keep it from every node. growthTries is how many gangs
// are tried each time: there may be thousands that would like to grow.
const (
	growthRest  = 30 * time.Second
	mostRests   = 6
	growthTries = 32
)

// grow decides which Runs grow now, and by how much: older Runs first, each by one step, where there is room and money
// that nobody else has been given or is going to need (R23). The Run controllers carry it out. It reports whether all
// were looked at that are worth it: no more than growthTries are at a time.
func (e *grower) grow(now time.Time) bool {
	var aspirants []*gang
	for g := range e.roster.classes.elastic {
		if g.shape == nil && g.full.StepPods > 0 {
			aspirants = append(aspirants, g)
		}
	}
	slices.SortFunc(aspirants, byAge)
	contested := sync.OnceValue(e.roster.contested) // all that wait are looked at for it
	takenBack := sync.OnceValue(func() map[string]bool { return e.takenBack(now) })
	fork := plan.NewFork(e.fleet, e.accounts)
	defer fork.Revert()
	tries, all := growthTries, true
	for _, g := range aspirants {
		was := g.growth.to
		g.growth.to = 0
		if g.growth.failed {
			g.growth.failed, g.growth.rest = false, now.Add(growthRest<<min(g.growth.fails, mostRests))
			g.growth.fails++
		}
		if g.growth.shrunk {
			g.growth.shrunk, g.growth.rest = false, latest(g.growth.rest, now.Add(growthRest))
		}
		to := g.growing()
		switch {
		case to > 0:
		case tries == 0:
			all = false
			continue
		case !e.mayGrow(g, was, now):
			if !e.hasRoom(g) {
				e.lack(g, rqv1.LacksGPUs)
			}
			continue
		case contested()[g.full.Flavor],
			g.nextWidth() > g.run.Spec.Resources.TotalGPUs && takenBack()[g.full.Flavor]:
			e.lack(g, rqv1.LacksGPUs)
			continue
		default:
			tries--
			to = g.nextWidth()
		}
		places, lacks := e.cohort(g, to, now)
		if g.growing() == 0 {
			e.lack(g, lacks)
			e.letGrow(g, was, to, places != nil, now)
		}
		e.earmark(fork, g, places, now)
	}
	return all
}
