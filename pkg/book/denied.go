package book

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Objection is what the API server says against the pods of a Run.
type Objection struct {
	Why string
	// Quota says that it is for want of quota, so that it may take them once others are gone, Most how many such pods the
	// quota is for in all, and Pods how many whatever they ask for; 0 where that is not known.
	Quota      bool
	Most, Pods int
}

// passes reports whether so many ranks and spares of a Run would be taken if others were gone.
func (o *Objection) passes(ranks, spares int) bool {
	return o.Quota && (o.Most == 0 || ranks <= o.Most) && (o.Pods == 0 || ranks+spares <= o.Pods)
}

// NotTaken tells that the API server does not take pods that a Run should have, ranks at least where it runs, and why.
// One that waits gives its places back, nobody is cut for it, and those of its pods that were made go. It reports
// whether the book has the Run tried again; else whoever tells goes on trying.
func (b *Book) NotTaken(run types.UID, o Objection, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.roster.gangs[run]
	switch {
	case g == nil || g.run == nil || g.over() || g.opportunistic():
		return false
	case g.started():
		b.turns.denyRank(g, o, now)
		return false
	case !g.awaitsPods() && (!o.Quota || g.underWay() || g.leader() != nil):
		b.turns.leaderless(g)
		return false
	}
	b.turns.deny(g, o, now)
	return true
}

// leaderless has a gang keep nobody from anything whose leader is not taken for what it is.
func (v *activations) leaderless(g *gang) {
	if g.leader() != nil || g.underWay() {
		return
	}
	g.purse.left = true
	v.waiting.note(g)
	if g.promised() != nil {
		v.agenda.setPromise(g, nil)
	}
}

// NotMade tells why the pods for which a Run has places have not been made so far, although the API server may take
// them.
func (b *Book) NotMade(run types.UID, why string) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g != nil && (g.awaitsPods() || g.denied()) {
		g.denial.delays = why
	}
}

// denyRank notes that a running gang lacks a rank which the API server does not take. All that wait in its namespace
// give up their pods for it, and then shards that run, until it has the rank.
func (v *activations) denyRank(g *gang, o Objection, now time.Time) {
	if !g.lacksRank() {
		return // a cohort takes what is left
	}
	if g.denial.since.IsZero() {
		g.denial.since = now
	}
	if o.passes(g.settled().Pods(), 0) && v.hasTurn(g, now) {
		v.reclaimQuota(g, now)
	}
}

// giveUp has a gang give its places back whose pods have not been made in time, and wait.
func (v *activations) giveUp(g *gang, now time.Time) {
	why := fmt.Sprintf("the Run's pods could not be created within %s", v.args.GangDeadline.Duration)
	if g.denial.delays != "" {
		why += ": " + g.denial.delays
	}
	v.deny(g, Objection{Why: why}, now)
}

// deny has a gang give its places back whose pods are not there, and rest for a while.
func (v *activations) deny(g *gang, o Objection, now time.Time) {
	alone := !g.awaitsPods()
	published := g.activating() && g.reservation.Status.ActivatedAt != nil
	if !published {
		v.letOff(g)
	}
	v.places.unwind(g)
	if g.check.pending { // what is said of those places is nothing to it any more
		g.check.pending = false
		v.mail.reconcile(keyOf(g.run), lane.Cut) // it was not looked at meanwhile
	}
	most := mostDenials
	if alone {
		most = fewDenials
	}
	least := g.full.Least()
	g.denial = denial{rests: true, tries: g.denial.tries + 1, quota: o.passes(least.Pods(), least.Spares()), alone: alone,
		until: now.Add(firstDenial << min(g.denial.tries, most))}
	v.roster.classes.turnedBack[g] = true
	if g.promised() != nil {
		v.agenda.setPromise(g, nil) // it keeps others from nothing
	}
	v.waiting.refuse(g, &plan.Refusal{Reason: plan.NotCreated, Owner: g.run.Spec.Owner, Flavor: g.full.Flavor,
		WantedGPUs: least.HeldGPUs(), Message: o.Why})
	g.tried = v.waiting.epoch
	v.note(g, now)
	if published {
		status := &g.reservation.Status
		a := &Activation{At: status.ActivatedAt.Time, Conflicts: status.ConflictSet, Cuts: status.Cuts}
		if status.Lottery != nil {
			a.Odds, a.Draws, a.Nonce = status.Lottery.Odds, status.Lottery.Draws, resolver.Nonce(v.agenda.key, g.reservation.UID)
		}
		v.fail(g, a, now)
		a.Cause, a.Why = rqv1.CanceledRoomTaken, o.Why
	}
}

// retryDenied tries those again whose time has come: in each namespace one at a time, the oldest first. One that has
// been in vain has the quota of its namespace to itself meanwhile.
func (v *activations) retryDenied(now time.Time) {
	busy := map[string]bool{}
	var ready, late []*gang
	for g := range v.roster.classes.turnedBack {
		switch {
		case g.run == nil || g.over() || g.started() || !g.denied() && !g.awaitsPods():
			delete(v.roster.classes.turnedBack, g)
		case g.denied() && g.denial.rests:
			if !now.Before(g.denial.until) {
				ready = append(ready, g)
			}
		case g.denied() && !g.woken && !now.Before(g.denial.until) && !v.roster.yields(g):
			late = append(late, g)
		default:
			busy[g.run.Namespace] = true
		}
	}
	slices.SortFunc(late, byAge)
	for _, g := range late {
		v.giveUp(g, now)
	}
	v.endTurns(now)
	slices.SortFunc(ready, byPlace)
	for _, g := range ready {
		space := g.run.Namespace
		if t, given := v.roster.turns[space]; busy[space] || given && t.of != g {
			continue
		}
		busy[space] = true
		v.retry(g, now)
	}
}

// retry has a gang tried again that rests, as soon as those have left whose pods may be in its way.
func (v *activations) retry(g *gang, now time.Time) {
	d := &g.denial
	if d.quota && d.tries > 1 && (!d.alone || v.roster.youngerLeads(g) || v.future.fitsNow(g, now)) {
		if !v.hasTurn(g, now) {
			return
		}
		if d.tries > 2 && !d.reclaimed {
			d.reclaimed = true
			if v.reclaimQuota(g, now) {
				return
			}
		}
	}
	d.rests, d.until = false, now.Add(v.args.GangDeadline.Duration)
	v.waiting.wake(g)
}

// giveUpMusters has those give up who have taken too long to have their pods made, and other rules asked about them, or
// one of whose pods is refused, before others are cut for them.
func (v *activations) giveUpMusters(now time.Time) {
	var late []*gang
	v.mustering(func(g *gang) {
		if at, bounded := v.musterBy(g); bounded && !now.Before(at) {
			late = append(late, g)
		}
	})
	slices.SortFunc(late, byAge)
	for _, g := range late {
		if why := v.nodes.anyContradicts(g); why != "" {
			v.deny(g, Objection{Why: why}, now)
		} else if g.awaitsPods() {
			v.giveUp(g, now)
		} else {
			v.refute(g, nil, nil, true, now)
		}
	}
}

// mustering goes through the gangs whose pods are made, or asked about, before others go for them.
func (v *activations) mustering(visit func(g *gang)) {
	for g := range v.cuts.decided {
		visit(g)
	}
	for g := range v.roster.classes.mustering {
		if _, decided := v.cuts.decided[g]; !decided {
			visit(g)
		}
	}
}

// musterBy returns when a gang for which others are to be cut, or shards to leave, has its pods, accepted by other
// rules, at the latest.
func (v *activations) musterBy(g *gang) (time.Time, bool) {
	switch {
	case g.untold() && v.nodes.anyContradicts(g) != "":
		return g.activation.At, true // one of them is refused as it was admitted
	case g.activation != nil && !g.activation.Failed && (g.awaitsPods() || g.check.again):
		return g.activation.At.Add(v.args.GangDeadline.Duration), true
	case g.sweepsLater() && g.activation == nil:
		return g.madeBy, true
	}
	return time.Time{}, false
}

// nextDenied tells when something is to be done about either.
func (v *activations) nextDenied(e *earliest, now time.Time) {
	if len(v.roster.turns) > 0 {
		e.by(now.Add(sweepPeriod))
	}
	for g := range v.roster.classes.turnedBack {
		if g.denied() && !g.woken {
			e.by(g.denial.until)
		}
	}
	v.mustering(func(g *gang) {
		if at, bounded := v.musterBy(g); bounded {
			e.by(at)
		}
	})
}

// losesPlaces has a gang be planned anew that is to start and has lost its places. What was decided for it is off, if
// nobody has been told.
func (v *activations) losesPlaces(g *gang) {
	if g.run == nil || g.started() || g.underWay() {
		return
	}
	if g.bereft() {
		v.letOff(g)
	}
	v.waiting.again(g)
}

// dropBereft takes back what was decided for gangs that have lost their places, such as with their nodes.
func (v *activations) dropBereft() {
	var bereft []*gang
	for g := range v.cuts.decided {
		if g.bereft() {
			bereft = append(bereft, g)
		}
	}
	slices.SortFunc(bereft, byAge)
	for _, g := range bereft {
		v.losesPlaces(g)
	}
}

// keepSpare takes back what was decided for others, and nobody has been told of, by which the spare goes whose place a
// new rank is to take: who has lost a rank goes before who is to start.
func (v *activations) keepSpare(m *member) {
	r, _ := rank.ReplacementOf(m.pod)
	spare, held := v.roster.members[r.SpareUID], v.seats.held[r.SpareUID]
	if spare == nil || held == nil || spare.gang != m.gang || m.part.Spare || !m.gang.started() {
		return
	}
	for _, g := range slices.Clone(held.awaitedBy) {
		if g.untold() {
			v.letOff(g)
			v.places.unwind(g)
			v.waiting.again(g)
		}
	}
}
