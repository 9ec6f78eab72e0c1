package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// What is left of a quota is for one gang of its namespace at a time, its turn: two that each had half of their pods
// would keep each other from it. A gang that runs and lacks a rank has it before all that wait.

// quotaTurn is a gang that is to have what is left of a quota to itself.
type quotaTurn struct {
	of *gang
	// until is how long others are waited for, and ends when the turn is over at the latest.
	until, ends time.Time
	// leaders are the gangs whose pods are to go meanwhile, and shards those that are to: both as far as they were there
	// when that was last looked at.
	leaders []*gang
	shards  []types.UID
}

// yields reports whether a gang has no more pods than it has places for now: those that the API server has just turned
// back rest, and another of its namespace may have its turn.
func (r *roster) yields(g *gang) bool {
	if g.run == nil || g.over() {
		return false
	}
	t, given := r.turns[g.run.Namespace]
	given = given && t.of != g && t.of.run != nil
	if g.opportunistic() {
		return given
	}
	return g.denied() && g.denial.rests && !g.started() && !g.underWay() || given && g.merelyWaits()
}

// merelyWaits reports whether a gang is to start and has neither places nor room, nor has it been decided who is cut
// for it.
func (g *gang) merelyWaits() bool {
	return g.run != nil && g.run.Status.Phase == rqv1.RunPending && !g.opportunistic() && !g.underWay() &&
		!g.keepsRoom() && !g.activates()
}

// youngerLeads reports whether a younger gang that waits in the namespace of one has a pod that it could do without.
func (r *roster) youngerLeads(g *gang) bool {
	for other := range r.living {
		if other.merelyWaits() && other.run.Namespace == g.run.Namespace && byPlace(g, other) < 0 && other.hasUnbound() {
			return true
		}
	}
	return false
}

// hasTurn reports whether a gang has the quota of its namespace to itself, as far as those go that wait there. It is
// given it if nobody has it, or if only somebody has who waits and it runs.
func (v *activations) hasTurn(g *gang, now time.Time) bool {
	space := g.run.Namespace
	t, given := v.roster.turns[space]
	if !given || g.started() && !t.of.started() {
		t = &quotaTurn{of: g, until: now.Add(turnPeriod), ends: now.Add(turnPeriod + v.args.GangDeadline.Duration)}
		v.roster.turns[space] = t
		t.leaders = v.tellWaiting(g, space)
	}
	if t.of != g {
		return false
	}
	t.leaders = slices.DeleteFunc(t.leaders, func(other *gang) bool {
		return !v.roster.yields(other) || !other.hasUnbound()
	})
	t.shards = slices.DeleteFunc(t.shards, func(shard types.UID) bool { return v.seats.held[shard] == nil })
	return len(t.leaders)+len(t.shards) == 0 || !now.Before(t.until)
}

// hasUnbound reports whether a pod of the gang has been made that has no node.
func (g *gang) hasUnbound() bool {
	return slices.ContainsFunc(slices.Concat(g.active.members, g.spares.members), func(m *member) bool {
		return m != nil && !m.standIn && m.stage == unplaced
	})
}

// lasts reports whether the gang is still being tried: that others are about to be cut for it is part of that.
func (t *quotaTurn) lasts(now time.Time) bool {
	g := t.of
	switch {
	case g.run == nil || g.over() || g.suspended():
		return false
	case g.started():
		return !g.denial.since.IsZero() && g.lacksRank()
	case g.denial.tries == 0 || !now.Before(t.ends):
		return false
	case g.denied():
		return !g.denial.rests || !now.Before(g.denial.until)
	case g.refusal == nil || g.woken || g.undated():
		return true
	}
	return g.promise != nil && !g.promise.At.After(now.Add(turnPeriod))
}

// endTurns has everybody have their pods again in namespaces where a turn is over.
func (v *activations) endTurns(now time.Time) {
	for space, t := range v.roster.turns {
		if !t.lasts(now) {
			delete(v.roster.turns, space)
			v.tellWaiting(t.of, space)
		}
	}
}

// tellWaiting has the Runs of a namespace looked at that wait, or wait for more shards, and returns those whose pods
// give way.
func (v *activations) tellWaiting(g *gang, space string) (leaders []*gang) {
	for other := range v.roster.living {
		if other == g || other.run == nil || other.run.Namespace != space ||
			other.run.Status.Phase != rqv1.RunPending && !other.opportunistic() {
			continue
		}
		v.mail.reconcile(keyOf(other.run), lane.Date)
		if v.roster.yields(other) && other.hasUnbound() {
			leaders = append(leaders, other)
		}
	}
	return leaders
}

// reclaimQuota has as many shards of a namespace leave as do for the pods that a gang lacks which has its turn there,
// the youngest first, and has the gang wait for them. It reports whether there are any.
func (v *activations) reclaimQuota(g *gang, now time.Time) bool {
	var pods []types.UID
	var shards []plan.Shard
	for _, on := range v.seats.shards {
		for pod, gpus := range on {
			m := v.roster.members[pod]
			if m == nil || m.gang.run == nil || m.gang.run.Namespace != g.run.Namespace {
				continue
			}
			pods = append(pods, pod)
			shards = append(shards, plan.Shard{Key: keyOf(m.pod).String(), GPUs: gpus, Since: v.seats.heldSince(m),
				Leaving: v.places.givesWay(pod)})
		}
	}
	going := plan.Reclaim(shards, g.missing()*g.full.GPUsPerPod)
	if byNumber := plan.Reclaim(each(shards), g.missing()); len(byNumber) > len(going) {
		going = byNumber // a quota may be of pods, or of what they ask for
	}
	t := v.roster.turns[g.run.Namespace]
	t.until = now.Add(turnPeriod)
	for _, at := range going {
		t.shards = append(t.shards, pods[at])
		v.places.evict(v.roster.members[pods[at]], rqv1.ClosedReclaimedQuota)
	}
	return len(t.shards) > 0
}

// each returns shards of which each counts for one.
func each(shards []plan.Shard) []plan.Shard {
	out := slices.Clone(shards)
	for i := range out {
		out[i].GPUs = 1
	}
	return out
}

// turnPeriod is how long others are waited for that are to give their pods up.
const turnPeriod = 10 * time.Second
