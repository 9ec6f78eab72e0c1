package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// fail ends an activation by which its Run does not start after all, and says what has come between.
func (b *Book) fail(g *gang, a *Activation, now time.Time) {
	a.Failed, a.Cause, a.Why = true, rqv1.CanceledRoomTaken, "what was to be free is not"
	if len(g.stuck) > 0 {
		a.Cause, a.Why = rqv1.CanceledVictimStayed, g.stuck[0].String()
	}
	if why := b.turnedDown(g); why != "" { // it goes before the other: nobody is cut anew then
		if a.Cause == rqv1.CanceledVictimStayed {
			why += "; and " + a.Why
		}
		a.Cause, a.Why = rqv1.CanceledNodesRejected, why
		b.noteRebuff(g, g.reservation.UID, slices.Collect(maps.Keys(g.excluded)))
	}
	g.activation, g.since = a, now
	b.reconcile(keyOf(g.run))
}

// turnedDown says which nodes other scheduling rules keep a gang from, for want of something else than GPUs; empty when they do
// not. GPUs are taken by somebody who came between, and may be free the next time.
func (b *Book) turnedDown(g *gang) string {
	var nodes []string
	for node, why := range g.excluded {
		if !strings.Contains(why, b.args.GPUResource) {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	slices.Sort(nodes)
	return fmt.Sprintf("other rules turned %d nodes down, such as %s: %s", len(nodes), nodes[0], g.excluded[nodes[0]])
}

// refusedSince returns from when on a gang waits for its turn: when it was first refused. A gang whose last activation was
// planned again because of what is stuck has waited since that one was promised.
func (b *Book) refusedSince(g *gang) time.Time {
	since := g.since
	for _, r := range b.reservations.ofRun(g.run.UID) {
		s := &r.Status
		if s.Cause == rqv1.CanceledVictimStayed && s.EndedAt != nil && since.Sub(s.EndedAt.Time).Abs() < time.Minute && r.CreationTimestamp.Time.Before(since) {
			since = r.CreationTimestamp.Time
		}
	}
	return since
}

// ofRun returns a Run's Reservations, the latest first.
func (r *reservations) ofRun(run types.UID) []*rqv1.Reservation {
	out := slices.Collect(maps.Values(r.byRun[run]))
	slices.SortFunc(out, func(x, y *rqv1.Reservation) int {
		return cmp.Or(y.CreationTimestamp.Compare(x.CreationTimestamp.Time), strings.Compare(y.Name, x.Name))
	})
	return out
}
