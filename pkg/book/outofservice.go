package book

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// A node that stands may be out of service for a moment, for a cordon or a taint. Before a Run ends because a rank that
// was there has no other place, the node is waited for, and the place there is kept (R27, R42).

// outOfService reports whether a node stands, and is cordoned or has a taint that a rank does not tolerate.
func (t *nodeTable) outOfService(g *gang, index int, name string) bool {
	node, pod := t.byName[name], g.podOf(index, g.model())
	return t.stands(name) && !t.signs[name] && !t.heldBack[name] &&
		(node.Spec.Unschedulable || pod != nil && !tolerates(pod, node))
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
	return until, now.Before(until)
}

// notNow reports whether a rank goes elsewhere if it can than where its place is kept.
func (x *starter) notNow(g *gang, v *vacancy, now time.Time) bool {
	_, stays := x.stays(g, v, now)
	return stays || g.lastResort(v)
}

// awaitNodes has a running gang whose missing ranks find no room wait for their nodes, if all of those are waited for.
// It does not where a spare stands by for one of them, or where the gang may go on narrower.
func (x *starter) awaitNodes(g *gang, missing []plan.Missing, now time.Time) *plan.Refusal {
	if g.narrower > 0 {
		return nil
	}
	first, node := time.Time{}, ""
	for _, m := range missing {
		at := slices.IndexFunc(g.vacant, func(v vacancy) bool { return v.own && v.index == m.Index })
		if m.Spare || at < 0 || x.standsBy(g, m) {
			return nil
		}
		until, stays := x.stays(g, &g.vacant[at], now)
		if !stays {
			return nil
		}
		if node == "" || until.Before(first) {
			first, node = until, g.vacant[at].node
		}
	}
	if node == "" {
		return nil
	}
	g.awaitsUntil = first
	x.seats.roster.classes.awaiting[g] = true
	refusal := g.notYet(fmt.Sprintf("node %s, where a rank was, takes no pods now, and nothing else is free; it is "+
		"waited for until %s", node, first.UTC().Format(time.RFC3339)))
	refusal.Awaited = node
	return refusal
}

// nextAwaited tells when a node has been waited for long enough.
func (x *starter) nextAwaited(e *earliest) {
	for g := range x.seats.roster.classes.awaiting {
		e.by(g.awaitsUntil)
	}
}

// awaited has those planned anew who have waited long enough.
func (x *starter) awaited(now time.Time) {
	for _, g := range slices.SortedFunc(maps.Keys(x.seats.roster.classes.awaiting), byAge) {
		if now.Before(g.awaitsUntil) {
			continue
		}
		delete(x.seats.roster.classes.awaiting, g)
		if g.complete() && g.leader() != nil {
			x.waiting.wake(g)
		}
	}
}
