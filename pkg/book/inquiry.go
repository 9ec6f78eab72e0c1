package book

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// inquiry is what other scheduling rules say of the places to which ranks of a gang are to move (R31). No pod is there
// of which they could be asked in its cycle: the ranks run where they are.
type inquiry struct {
	// to are the places, and shape that of the gang when its ranks have moved there.
	to    []destination
	shape plan.Demand
	question
	// accepted says that the rules accept the places, since when.
	accepted bool
	since    time.Time
	// unsure counts how often in turn nothing could be found out.
	unsure int
	// turned are the nodes that they turned down, until an instant, and why.
	turned map[string]string
	until  time.Time
}

// mostUnsure is how often places are asked about of which nothing can be found out, before others are tried.
const mostUnsure = 3

// forget forgets the places.
func (q *inquiry) forget() { q.to, q.pending, q.accepted = nil, false, false }

// turnedDown returns the nodes that rules turned down lately, and why.
func (q *inquiry) turnedDown(now time.Time) map[string]string {
	if !now.Before(q.until) {
		q.turned = nil
	}
	return q.turned
}

// firstTurned names the first of nodes that were turned down, to be added to a message.
func firstTurned(turned map[string]string) string {
	for _, node := range slices.Sorted(maps.Keys(turned)) {
		return fmt.Sprintf("; another scheduling rule rejects node %s: %s", node, turned[node])
	}
	return ""
}

// asks has other scheduling rules be asked about the places to which ranks of a gang are to move, and reports whether
// it is not known yet that they accept them. What they have accepted they are asked about again by and by.
func (d *drainer) asks(g *gang, to []destination, shape plan.Demand, now time.Time) bool {
	q := &g.inquiry
	if !slices.Equal(q.to, to) {
		q.forget()
	}
	q.to, q.shape = to, shape
	if !d.nodes.asks {
		return false
	}
	if !q.pending && (!q.accepted || !now.Before(q.since.Add(d.args.GangDeadline.Duration))) {
		q.ask()
		q.queues = true
		d.roster.asking[g.run.UID] = true
		d.mail.ask(g.run.UID)
	}
	return !q.accepted
}

// CheckMoves returns what is to be checked of the places to which ranks of a Run are to move; nil when nothing is.
// Whoever is given it concludes it.
func (b *Book) CheckMoves(run types.UID) *Check {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	if g == nil || g.run == nil || !g.inquiry.pending {
		return nil
	}
	g.inquiry.queues = false
	c := &Check{Run: run, Leaving: map[string][]types.UID{}, Seats: true, asked: g.inquiry.asked}
	for _, to := range g.inquiry.to {
		m := g.rankAt(to.rank.Index)
		if m == nil {
			return nil
		}
		pod := g.standInFor(rank.Part{Index: to.rank.Index})
		pod.Spec.NodeName = "" // those that it is like are bound
		c.Places = append(c.Places, Place{pod, to.node})
		c.Leaving[to.rank.Node] = append(c.Leaving[to.rank.Node], m.pod.UID)
		if to.spare != "" {
			c.Leaving[to.node] = append(c.Leaving[to.node], to.spare)
		}
	}
	for _, s := range [...]*squad{&g.active, &g.spares} {
		for _, m := range s.members {
			if m != nil && m.placed() && !g.inquiry.shape.Has(m.part) {
				c.Leaving[m.node] = append(c.Leaving[m.node], m.pod.UID)
			}
		}
	}
	b.places.shardsToAsk(c)
	return c
}

// ConcludeMoves notes what other rules say of such a check: the nodes that turn its pods down, none when all accept
// them and that is sure. Other places are looked for then.
func (b *Book) ConcludeMoves(c *Check, turned []Turning, sure bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.roster.gangs[c.Run]
	if g == nil || g.run == nil || !g.inquiry.pending || g.inquiry.asked != c.asked {
		return
	}
	b.drainer.conclude(g, turned, sure, now)
}

// conclude notes what other rules say of the places to which ranks of a gang are to move.
func (d *drainer) conclude(g *gang, turned []Turning, sure bool, now time.Time) {
	q := &g.inquiry
	q.pending, q.accepted, q.since = false, sure && len(turned) == 0, now
	if sure || len(turned) > 0 {
		q.unsure = 0
	} else {
		q.unsure++
	}
	if q.unsure == mostUnsure {
		q.unsure = 0
		for _, to := range q.to {
			turned = append(turned, Turning{Node: to.node, Why: unsaid})
		}
	}
	for _, t := range turned {
		if q.turnedDown(now); q.turned == nil {
			q.turned, q.until = map[string]string{}, now.Add(d.args.GangDeadline.Duration)
		}
		q.turned[t.Node] = t.Why
	}
	if len(turned) > 0 {
		q.forget()
		g.patience.since = time.Time{} // what is kept is given back, once nobody can evict the rank any more
	}
	if len(turned) > 0 || q.accepted {
		d.mail.reconcile(keyOf(g.run), lane.Cut)
	}
}
