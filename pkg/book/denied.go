package book

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// NotTaken tells that the API server does not take the pods for which a Run has places, and why. The Run gives its
// places back, nobody is cut for it, and those of its pods that were made go.
func (b *Book) NotTaken(run types.UID, why string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.roster.gangs[run]; g != nil && g.run != nil && g.awaitsPods() {
		b.turns.deny(g, why, now)
	}
}

// NotMade tells why the pods for which a Run has places have not been made so far, although the API server may take
// them.
func (b *Book) NotMade(run types.UID, why string) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g != nil && g.awaitsPods() {
		g.denial.delays = why
	}
}

// giveUp has a gang give its places back whose pods have not been made in time, and wait.
func (v *activations) giveUp(g *gang, now time.Time) {
	why := fmt.Sprintf("the Run's pods could not be made within %s", v.args.GangDeadline.Duration)
	if g.denial.delays != "" {
		why += ": " + g.denial.delays
	}
	v.deny(g, why, now)
}

// deny has a gang give its places back whose pods are not there, and wait.
func (v *activations) deny(g *gang, why string, now time.Time) {
	published := g.activating() && g.reservation.Status.ActivatedAt != nil
	if !published {
		v.letOff(g)
	}
	v.places.unwind(g)
	g.denial.tries++
	g.denial.until = now.Add(firstDenial << min(g.denial.tries-1, mostDenials))
	v.roster.classes.turnedBack[g] = true
	if g.promise != nil || g.onRecord != nil {
		v.agenda.setPromise(g, nil) // it keeps others from nothing
	}
	v.waiting.refuse(g, &plan.Refusal{Reason: plan.NotCreated, Owner: g.run.Spec.Owner, Flavor: g.full.Flavor,
		WantedGPUs: g.full.Least().HeldGPUs(), Message: why})
	g.tried = v.waiting.epoch
	v.note(g, now)
	if published {
		status := &g.reservation.Status
		a := &Activation{At: status.ActivatedAt.Time, Conflicts: status.ConflictSet, Cuts: status.Cuts}
		if status.Lottery != nil {
			a.Odds, a.Draws, a.Nonce = status.Lottery.Odds, status.Lottery.Draws, resolver.Nonce(v.agenda.key, g.reservation.UID)
		}
		v.fail(g, a, now)
		a.Cause, a.Why = rqv1.CanceledRoomTaken, why
	}
}

// retryDenied tries those again whose time has come: in each namespace one at a time, the oldest first. Two that each
// had half of their pods would keep each other from the rest of a quota. Nor do the leaders of younger Runs that wait
// there, if it was in vain before: they go until it has had its turn.
func (v *activations) retryDenied(now time.Time) {
	busy := map[string]bool{}
	var ready []*gang
	for g := range v.roster.classes.turnedBack {
		switch {
		case g.run == nil || g.over() || g.started() || !g.denied() && !g.awaitsPods():
			delete(v.roster.classes.turnedBack, g)
		case g.woken || !g.denied():
			busy[g.run.Namespace] = true
		case !now.Before(g.denial.until):
			ready = append(ready, g)
		}
	}
	v.endTurns(now)
	slices.SortFunc(ready, byAge)
	for _, g := range ready {
		switch space := g.run.Namespace; {
		case busy[space]:
		case g.denial.tries > 1 && !v.hasTurn(g, now):
			busy[space] = true
		default:
			busy[space] = true
			v.waiting.wake(g)
		}
	}
}

// lasts reports whether the gang is still being tried: that others are about to be cut for it is part of that.
func (t quotaTurn) lasts(now time.Time) bool {
	g := t.of
	switch {
	case g.run == nil || g.over() || g.started() || g.denial.tries == 0 || !now.Before(t.ends):
		return false
	case g.denied():
		return g.woken || !now.Before(g.denial.until)
	case g.refusal == nil || g.woken || g.undated():
		return true
	}
	return g.promise != nil && !g.promise.At.After(now.Add(turnPeriod))
}

// hasTurn reports whether a gang has the quota of its namespace to itself, as far as younger Runs that wait go. It is
// given it, if nobody has it.
func (v *activations) hasTurn(g *gang, now time.Time) bool {
	space := g.run.Namespace
	t, given := v.roster.turns[space]
	if !given {
		t = quotaTurn{of: g, until: now.Add(turnPeriod), ends: now.Add(turnPeriod + v.args.GangDeadline.Duration)}
		v.roster.turns[space] = t
		v.tellYounger(g, space)
	}
	if t.of != g {
		return false
	}
	for other := range v.roster.living {
		if v.roster.yields(other) && other.active.present+other.spares.present > 0 {
			return !now.Before(t.until)
		}
	}
	return true
}

// endTurns has everybody have their leaders again in namespaces where a turn is over.
func (v *activations) endTurns(now time.Time) {
	for space, t := range v.roster.turns {
		if !t.lasts(now) {
			delete(v.roster.turns, space)
			v.tellYounger(t.of, space)
		}
	}
}

// tellYounger has the Runs of a namespace looked at that wait.
func (v *activations) tellYounger(g *gang, space string) {
	for other := range v.roster.living {
		if other != g && other.run != nil && other.run.Namespace == space && other.run.Status.Phase == rqv1.RunPending {
			v.mail.reconcile(keyOf(other.run), lane.Date)
		}
	}
}

// turnPeriod is how long others are waited for that are to give their pods up.
const turnPeriod = 10 * time.Second

// giveUpMusters has those give up who have taken too long to have their pods made, and other rules asked about them,
// before others are cut for them.
func (v *activations) giveUpMusters(now time.Time) {
	var late []*gang
	for g := range v.cuts.decided {
		if at, bounded := v.musterBy(g); bounded && !now.Before(at) {
			late = append(late, g)
		}
	}
	slices.SortFunc(late, byAge)
	for _, g := range late {
		if g.awaitsPods() {
			v.giveUp(g, now)
		} else {
			v.refute(g, nil, true, now)
		}
	}
}

// musterBy returns when a gang for which others are to be cut has its pods, accepted by other rules, at the latest.
func (v *activations) musterBy(g *gang) (time.Time, bool) {
	if g.activation == nil || g.activation.Failed || !g.awaitsPods() && !g.check.again {
		return time.Time{}, false
	}
	return g.activation.At.Add(v.args.GangDeadline.Duration), true
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
	for g := range v.cuts.decided {
		if at, bounded := v.musterBy(g); bounded {
			e.by(at)
		}
	}
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
