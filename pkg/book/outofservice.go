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
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// A node that stands may be out of service for a moment, for a cordon or a taint. Before anybody ends, or a group
// moves, because a rank that was there has no other place, the node is waited for, and the place there is kept (R27,
// R42).

// nodeWait is what a running gang waits for of whose ranks the nodes are out of service.
type nodeWait struct {
	until time.Time // when the first of them is waited for no more
	// ranks are those that wait, for which the others do not, and left those that are left out of a plan for the others.
	ranks, left map[int]bool
	// inVain says that it is planned without any waiting, since others have no room.
	inVain bool
	// said is what was said of the last wait, as long as one of its ranks is tried since: it may be turned away again.
	said string
}

// note notes what a plan has come to.
func (w *nodeWait) note(refusal *plan.Refusal) {
	if refusal != nil {
		w.said = ""
	}
	if refusal != nil && refusal.Awaits {
		w.said = refusal.Message
	}
}

// saidBefore returns what was said of a wait before its ranks were tried; empty where others leave for them by now.
func (g *gang) saidBefore() string {
	if g.refusal != nil || g.awaiting > 0 {
		return ""
	}
	return g.nodeWait.said
}

// outOfService reports whether a node stands, and is cordoned or has a taint that a rank does not tolerate.
func (t *nodeTable) outOfService(g *gang, index int, name string) bool {
	node, pod := t.byName[name], g.modelOf(rank.Part{Index: index})
	return t.stands(name) && !t.signs[name] && !t.heldBack[name] &&
		(node.Spec.Unschedulable || !tolerates(pod, node))
}

// endedBy reports whether a node has ended a pod of a gang itself: it is not waited for.
func (g *gang) endedBy(pod types.UID) bool {
	return slices.ContainsFunc(g.run.Status.Deaths, func(d rqv1.RunDeath) bool {
		return d.Pod == pod && d.Cause == rqv1.CauseNode && !ending.ByPeople(d.Sign)
	})
}

// stays reports whether what is kept for a rank is on such a node, and until when it is waited for.
func (x *starter) stays(g *gang, v *vacancy, now time.Time) (until time.Time, is bool) {
	last := g.latest[rank.Part{Index: v.index}]
	if !v.own || last == nil || last.pod != v.pod || last.ended.IsZero() || g.endedBy(v.pod) ||
		!x.nodes.outOfService(g, v.index, v.node) {
		return time.Time{}, false
	}
	until = last.ended.Add(x.args.GangDeadline.Duration)
	outage := x.fleet.Outage(v.node)
	return until, now.Before(until) && !(outage.Shuts(now, until) && !outage.Over(until))
}

// notNow reports whether a rank goes elsewhere if it can than where its place is kept.
func (x *starter) notNow(g *gang, v *vacancy, now time.Time) bool {
	_, stays := x.stays(g, v, now)
	return stays || g.lastResort(v)
}

// awaits returns those of some missing ranks of a running gang whose nodes are waited for.
func (x *starter) awaits(g *gang, missing []plan.Missing, now time.Time) map[int]bool {
	out := map[int]bool{}
	for _, m := range missing {
		if v := g.keptOwn(m); v != nil && !g.nodeWait.inVain {
			if _, stays := x.stays(g, v, now); stays {
				out[m.Index] = true
			}
		}
	}
	return out
}

// keptOwn returns what a missing rank of a running gang held itself and is kept for it; nil where nothing is.
func (g *gang) keptOwn(m plan.Missing) *vacancy {
	at := slices.IndexFunc(g.vacant, func(v vacancy) bool { return v.own && v.index == m.Index })
	if m.Spare || at < 0 || !g.started() || g.grows() {
		return nil
	}
	return &g.vacant[at]
}

// keepThere keeps what missing ranks held on nodes that have come to be out of service since their pods went, as when
// they were about to go back there.
func (x *starter) keepThere(g *gang, missing []plan.Missing, now time.Time) {
	if !g.goesOn() || g.grows() {
		return
	}
	for _, m := range missing {
		if m.Spare || g.hasPlace(m.Index) {
			continue
		}
		l, goesOn := x.places.goesOn(g, m.Index)
		if goesOn && !l.ended.IsZero() && now.Before(l.ended.Add(x.args.GangDeadline.Duration)) && !g.endedBy(l.pod) &&
			x.nodes.outOfService(g, m.Index, l.node) {
			x.places.keepOwn(g, l)
		}
	}
}

// awaitNodes has missing ranks of a running gang that find no room wait for their nodes, if some of those are waited
// for; the others go where there is room, as do those of them for which there is some. Nobody waits where a spare
// stands by for one of them, or where the gang may go on narrower.
func (x *starter) awaitNodes(g *gang, pod *corev1.Pod, missing []plan.Missing, refusal *plan.Refusal,
	now time.Time) *plan.Refusal {
	waits := x.awaits(g, missing, now)
	if g.narrower > 0 || len(waits) == 0 ||
		slices.ContainsFunc(missing, func(m plan.Missing) bool { return x.standsBy(g, m) }) {
		return nil
	}
	if len(waits) < len(missing) || g.goesElsewhere(waits) {
		return x.goWithout(g, pod, waits, now)
	}
	if x.someGo(g, pod, now) {
		return x.planGang(g, pod, now)
	}
	first, by := (*vacancy)(nil), time.Time{}
	for _, m := range missing {
		v := g.keptOwn(m)
		until, _ := x.stays(g, v, now)
		if first == nil || until.Before(by) {
			first, by = v, until
		}
	}
	g.nodeWait.add(waits, by)
	x.seats.roster.classes.awaiting[g] = true
	return g.waitsThere(fmt.Sprintf("node %s, where a rank was, takes no pods now, and is waited for until %s: %s",
		first.node, by.UTC().Format(time.RFC3339), refusal.Message))
}

// add notes ranks that wait, and until when the first of them does; zero where that is seen when it comes.
func (w *nodeWait) add(ranks map[int]bool, until time.Time) {
	if w.ranks == nil {
		w.ranks = map[int]bool{}
	}
	maps.Copy(w.ranks, ranks)
	if w.until.IsZero() || !until.IsZero() && until.Before(w.until) {
		w.until = until
	}
}

// goesElsewhere reports whether a rank that is planned with some which wait for their nodes is another: it is to have
// the place of a spare.
func (g *gang) goesElsewhere(waits map[int]bool) bool {
	return slices.ContainsFunc(g.active.between(0, g.active.size), func(m *member) bool {
		return m != nil && m.stage == unplaced && !m.leaving && !m.extra() && !m.joins() && !waits[m.part.Index] &&
			g.plansWith(m)
	})
}

// goWithout gives missing ranks free places but for those that wait for their nodes, which are refused then by
// themselves. Where there are none for the others nobody waits.
func (x *starter) goWithout(g *gang, pod *corev1.Pod, waits map[int]bool, now time.Time) *plan.Refusal {
	refusal := x.goesWithout(g, pod, waits, now)
	switch {
	case refusal == nil:
		return x.planGang(g, pod, now)
	case refusal.Reason == plan.NotYet:
		return refusal
	}
	g.nodeWait.inVain = true
	defer func() { g.nodeWait.inVain = false }()
	return x.planGang(g, pod, now)
}

// goesWithout gives the others free places.
func (x *starter) goesWithout(g *gang, pod *corev1.Pod, waits map[int]bool, now time.Time) *plan.Refusal {
	return x.leavingOut(g, waits, func() *plan.Refusal {
		returns := g.returns
		g.returns = false // that there was no room for all says nothing of these
		defer func() { g.returns = returns }()
		return x.planGang(g, pod, now)
	})
}

// someGo gives those of the missing ranks free places for which there are some, and reports whether it has.
func (x *starter) someGo(g *gang, pod *corev1.Pod, now time.Time) bool {
	missing, refusal := x.seats.missingOf(g)
	if refusal != nil {
		return false
	}
	defer x.seats.spend(g, missing, now)()
	some := x.roomForSome(g, pod, missing, now)
	if len(some) == 0 || len(some) == len(missing) { // what those were refused for is something else
		return false
	}
	left := map[int]bool{}
	for _, m := range missing {
		if !slices.ContainsFunc(some, func(s plan.Missing) bool { return s.Part == m.Part }) {
			left[m.Index] = true
		}
	}
	return x.leavingOut(g, left, func() *plan.Refusal { return x.planGang(g, pod, now) }) == nil
}

// roomForSome returns which of some missing ranks have room together although all have none: as many as there is
// room for, those of lower index first, each where others of its group have been. One that has none says that none
// of its kind has any in its domain.
func (x *starter) roomForSome(g *gang, pod *corev1.Pod, missing []plan.Missing, now time.Time) (some []plan.Missing) {
	type where struct {
		domain string
		scope  int
		kind   *plan.Kind
	}
	at := func(m plan.Missing) where { return where{m.Domain, g.scopeOf(m.Part), m.Kind} }
	full, rejected := map[where]bool{}, x.nodes.rejectedAll(g, pod)
	fits := func(more []plan.Missing) bool {
		ranks := slices.Concat(some, more)
		defer x.paySeats(g, nil, ranks, now)()
		_, refusal := x.placeAside(g, g.demand, x.agenda.debts.claim(g, g.keptFor(ranks), now), ranks, rejected, now)
		return refusal == nil
	}
	var add func(more []plan.Missing)
	add = func(more []plan.Missing) {
		more = slices.DeleteFunc(more, func(m plan.Missing) bool { return full[at(m)] })
		switch n := len(more); {
		case n == 0:
		case fits(more):
			some = append(some, more...)
		case n == 1:
			full[at(more[0])] = true
		default:
			add(slices.Clone(more[:n/2]))
			add(slices.Clone(more[n/2:]))
		}
	}
	domains := map[int]string{}
	x.seats.awaitOwn(g, domains, anyScope)
	missing = slices.Clone(x.nodes.byKind(g, missing, false))
	for i := range missing {
		missing[i].Domain = cmp.Or(missing[i].Domain, domains[g.scopeOf(missing[i].Part)])
	}
	add(missing)
	return g.whole(some, missing)
}

// whole leaves out ranks of groups that stay together and of which nothing is kept where some have room and others have
// none: these could not follow.
func (g *gang) whole(some, missing []plan.Missing) []plan.Missing {
	has, lacks := map[rank.Part]bool{}, map[int]bool{}
	for _, m := range some {
		has[m.Part] = true
	}
	for _, m := range missing {
		if !has[m.Part] {
			lacks[g.scopeOf(m.Part)] = true
		}
	}
	return slices.DeleteFunc(some, func(m plan.Missing) bool {
		return g.staysTogether() && m.Domain == "" && lacks[g.scopeOf(m.Part)]
	})
}

// leavingOut has ranks be planned without some that wait for their nodes.
func (x *starter) leavingOut(g *gang, waits map[int]bool, plans func() *plan.Refusal) *plan.Refusal {
	before := g.nodeWait.left
	g.nodeWait.left = map[int]bool{}
	maps.Copy(g.nodeWait.left, before)
	maps.Copy(g.nodeWait.left, waits)
	defer func() { g.nodeWait.left = before }()
	return plans()
}

// planOthers gives free places to the other groups of a gang whose pods others make, one after the other, while ranks
// of one wait for their nodes. One that has no place waits as well.
func (x *starter) planOthers(g *gang, pod *corev1.Pod, refusal *plan.Refusal, now time.Time) *plan.Refusal {
	for g.late() && refusal.Awaits {
		other := x.leavingOut(g, g.nodeWait.ranks, func() *plan.Refusal {
			if g.firstRank() == nil {
				return refusal
			}
			return x.planGang(g, pod, now)
		})
		if other != nil && (other == refusal || !other.Awaits) {
			g.narrower = 0 // nobody does without a rank meanwhile
			break
		}
	}
	return refusal
}

// waitsApart reports whether a rank waits for its node, and the others of its gang not for it.
func (m *member) waitsApart() bool {
	return !m.part.Spare && m.stage == unplaced && m.gang.nodeWait.ranks[m.part.Index]
}

// waitingApart returns how many of a gang's ranks do so.
func (g *gang) waitingApart() (n int) {
	for index := range g.nodeWait.ranks {
		if m := g.rankAt(index); m != nil && m.waitsApart() {
			n++
		}
	}
	return n
}

// nextAwaited tells when a node has been waited for long enough.
func (x *starter) nextAwaited(e *earliest) {
	for g := range x.seats.roster.classes.awaiting {
		e.by(g.nodeWait.until)
	}
}

// awaited has those planned anew who have waited long enough.
func (x *starter) awaited(now time.Time) {
	for _, g := range slices.SortedFunc(maps.Keys(x.seats.roster.classes.awaiting), byAge) {
		if now.Before(g.nodeWait.until) {
			continue
		}
		delete(x.seats.roster.classes.awaiting, g)
		if g.complete() && g.leader() != nil {
			x.waiting.wake(g)
		}
	}
}
