package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Drain is what is asked of a Run that runs by those who empty nodes (R35).
type Drain struct {
	// Ranks are those on such nodes, in order; none while others of the Run are moving already.
	Ranks []DrainedRank
	// Moving says that the Run lacks a rank, or that one is going.
	Moving bool
	// Why says why one of them has nowhere to go; empty when each of them has a place that is set aside for it.
	Why string
}

// DrainedRank is a rank on a node that is being emptied.
type DrainedRank struct {
	Index int
	Node  string
}

// drainer finds and keeps places for ranks whose nodes are being emptied.
type drainer struct {
	accounts *budget.Accounts
	args     *config.Args
	fleet    *topology.Fleet
	nodes    *nodeTable
	roster   *roster
	seats    *seating
	kept     *keptRooms
}

// drains reports whether it is asked that a node which stands be emptied.
func (t *nodeTable) drains(name string) bool { return t.draining[name] && t.stands(name) }

// assess finds out which ranks of a gang are to move, and sets a place aside for each that could be the first. Of ranks
// of one group that is one place: when the first has moved, the next is looked at anew.
func (d *drainer) assess(g *gang, now time.Time) {
	was := g.drain
	g.drain = Drain{}
	if !g.started() || g.opportunistic() || g.over() || len(d.nodes.draining) == 0 && len(was.Ranks) == 0 {
		return
	}
	g.drain.Moving, g.drain.Ranks = d.asked(g)
	switch {
	case g.drain.Moving: // it has what is kept for it until it is planned
		d.keepOn(g, now)
		return
	case len(g.drain.Ranks) == 0:
		if len(was.Ranks) > 0 {
			d.kept.giveUpRoom(g)
		}
		return
	case slices.Equal(was.Ranks, g.drain.Ranks) && d.keeps(g):
		g.room.until = now.Add(d.args.GangDeadline.Duration)
		return
	}
	d.kept.giveUpRoom(g)
	var places []resolver.Holding
	places, g.drain.Why = d.places(g, now)
	if g.drain.Why == "" && len(places) > 0 {
		d.kept.keepFor(g, places, now.Add(d.args.GangDeadline.Duration))
		g.room.moves = true
	}
}

// keepOn keeps what is set aside for a gang, a rank of which has been told to go or is gone, until that is planned
// again. A process that has begun since sets it aside anew.
func (d *drainer) keepOn(g *gang, now time.Time) {
	until := now
	g.drain.Ranks = nil
	for index, m := range g.active.between(0, g.active.size) {
		if m == nil || !m.leaving || m.stage != bound || !d.nodes.drains(m.node) || m.hangs(now) {
			continue
		}
		g.drain.Ranks = append(g.drain.Ranks, DrainedRank{index, m.node})
		until = latest(until, m.pod.DeletionTimestamp.Time)
	}
	until = until.Add(d.args.GangDeadline.Duration)
	if len(g.room.held) > 0 {
		g.room.until = until
	} else if len(g.drain.Ranks) > 0 {
		if places, why := d.places(g, now); why == "" && len(places) > 0 {
			d.kept.keepFor(g, places, until)
			g.room.moves = true
		}
	}
	g.drain.Ranks = nil
}

// keeps reports whether room is kept for a gang, all of which could be used.
func (d *drainer) keeps(g *gang) bool {
	return len(g.room.held) > 0 && !slices.ContainsFunc(g.room.held, func(uid types.UID) bool {
		node := d.nodes.byName[d.seats.held[uid].node]
		return node == nil || !d.nodes.serves(node)
	})
}

// asked returns the ranks of a gang that are on nodes which are being emptied, and whether others are not where they
// are to be.
func (d *drainer) asked(g *gang) (moving bool, ranks []DrainedRank) {
	for index, m := range g.active.between(0, g.active.size) {
		switch {
		case m == nil, m.leaving, m.stage != bound && m.stage != finished, m.stage == bound && !d.nodes.stands(m.node):
			moving = true
		case m.stage == bound && d.nodes.drains(m.node):
			ranks = append(ranks, DrainedRank{index, m.node})
		}
	}
	return moving, ranks
}

// places returns the free room that is to be kept: for the first rank that is to move of each group without a spare
// which could serve it. It says why there is none.
func (d *drainer) places(g *gang, now time.Time) ([]resolver.Holding, string) {
	domains, refusal := d.nodes.domainsOf(g)
	if refusal != nil {
		return nil, refusal.Message
	}
	seen := map[int]bool{}
	var missing []plan.Missing
	claim := g.claim(plan.Kept{})
	for _, r := range g.drain.Ranks {
		m := g.active.members[r.Index]
		group := m.group()
		if seen[group] || d.standsBy(g, group) {
			continue
		}
		seen[group] = true
		missing = append(missing, g.missingPod(m, domains))
		claim.Kept[m.payer.key] = budget.Kept{Pods: claim.Kept[m.payer.key].Pods + 1, Relation: m.payer.relation}
	}
	if len(missing) == 0 {
		return nil, ""
	}
	assignments, refusal := plan.Gang(d.fleet, d.accounts, g.demand, claim, missing, d.nodes.rejected(g, g.model()), now)
	if refusal != nil {
		r := g.drain.Ranks[0]
		for _, other := range g.drain.Ranks {
			if other.Index == missing[0].Index {
				r = other
			}
		}
		return nil, fmt.Sprintf("rank %d on node %s has neither a spare nor free GPUs to go to: %s", r.Index, r.Node,
			refusal.Message)
	}
	out := make([]resolver.Holding, 0, len(assignments))
	for _, a := range assignments {
		out = append(out, resolver.Holding{Node: a.Node, GPUs: g.demand.GPUsPerPod, Beside: g.demand.Beside})
	}
	slices.SortFunc(out, func(x, y resolver.Holding) int { return cmp.Compare(x.Node, y.Node) })
	return out, ""
}

// standsBy reports whether a group has a spare on whose node a rank could go on.
func (d *drainer) standsBy(g *gang, group int) bool {
	for _, m := range g.spares.between(0, g.spares.size) {
		if m != nil && m.stage == bound && !m.leaving && !m.doomed() && m.group() == group && d.seats.accepts(g, m.node) {
			return true
		}
	}
	return false
}

// StuckDrain is a node that is being emptied of a Run's rank that has nowhere to go, and why.
type StuckDrain struct{ Node, Run, Why string }

// StuckDrains returns the nodes whose emptying waits, by name and Run.
func (b *Book) StuckDrains() (out []StuckDrain) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	for g := range b.roster.living {
		if g.run == nil || g.drain.Why == "" {
			continue
		}
		for _, r := range g.drain.Ranks {
			out = append(out, StuckDrain{r.Node, keyOf(g.run).String(), g.drain.Why})
		}
	}
	slices.SortFunc(out, func(x, y StuckDrain) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Run, y.Run))
	})
	return slices.Compact(out)
}
