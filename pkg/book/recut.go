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
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// fail ends an activation by which its Run does not start after all, and says what has come between.
func (b *Book) fail(g *gang, a *Activation, now time.Time) {
	a.Failed, a.Cause, a.Why = true, rqv1.CanceledRoomTaken, "what was to be free is not"
	if why := b.turnedDown(g); why != "" {
		a.Cause, a.Why = rqv1.CanceledNodesRejected, why
	}
	if len(g.stuck) > 0 {
		a.Cause, a.Why = rqv1.CanceledVictimStayed, g.stuck[0].String()
	}
	g.activation, g.since = a, now
	b.reconcile(client(g.run))
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

// rebuff is an activation that other rules have made vain, and the state of the nodes in which it was.
type rebuff struct {
	reservation types.UID
	nodes       int64
}

// rebuffed returns the Reservation by which others were cut for a gang in vain, because other scheduling rules kept it from its
// nodes; nil when there is none, or when the nodes of its type have changed since. Nobody is cut for it until then.
func (b *Book) rebuffed(g *gang) *rqv1.Reservation {
	for _, r := range b.reservations.ofRun(g.run.UID) {
		if r.Status.Cause != rqv1.CanceledNodesRejected || r.Status.EndedAt == nil {
			continue
		}
		flavor := g.run.Spec.Resources.GPUType
		if g.rebuff.reservation != r.UID {
			g.rebuff = rebuff{r.UID, b.waiting.nodes[flavor]}
			for _, node := range b.nodes {
				if node.CreationTimestamp.After(r.Status.EndedAt.Time) && b.flavorOf(node) == flavor {
					g.rebuff.nodes = -1 // it came while nobody looked
				}
			}
		}
		if g.rebuff.nodes != b.waiting.nodes[flavor] {
			return nil
		}
		return r
	}
	return nil
}

// nobody is who may be cut for a gang that has been rebuffed.
func nobody(map[string]bool, time.Time) []resolver.Tenant { return nil }

// tellRebuff has the refusal of a gang that has been rebuffed say so.
func (b *Book) tellRebuff(g *gang) {
	if r := b.rebuffed(g); r != nil && g.refusal != nil && !strings.Contains(g.refusal.Message, r.Name) {
		told := *g.refusal
		told.Message += fmt.Sprintf("; nobody is cut for it again until nodes of its type change: the cuts of Reservation %s were in vain", r.Name)
		g.refusal = &told
	}
}
