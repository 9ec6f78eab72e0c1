package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Drain is what is asked of a Run that runs by those who empty nodes, and by announced maintenance (R35).
type Drain struct {
	// Ranks are those on nodes that others empty, in order; none while others of the Run are moving already.
	Ranks []DrainedRank
	// Moving says that the Run lacks a rank, or that one is going.
	Moving bool
	// Why says why none of them may be evicted; empty when each of them has a place that is set aside for it. Lapsed says
	// that it had one for a while, and nobody came to evict it.
	Why    string
	Lapsed bool
	// Leave are the ranks that are to leave their nodes now, before maintenance, each of which has a place; Stay are those
	// that have none, and StayWhy says why.
	Leave, Stay []DrainedRank
	StayWhy     string
	// Narrower is the width in GPUs at which all of these have one; 0 when the Run may stay as wide as it is.
	Narrower int32
	// Spares are the spares that leave such nodes, by index.
	Spares []int
	// Asking says that other scheduling rules are being asked about the places: nobody moves before they accept them.
	Asking bool
}

// DrainedRank is a rank on a node that it is to leave.
type DrainedRank struct {
	Index int
	Node  string
}

// term is how long room is kept: since is from when on it has been, and rests until when it is not, since nobody came.
type term struct{ since, rests time.Time }

// patience is how long room is kept for ranks that others are to evict.
type patience struct {
	term
	// open says that the Run's PodDisruptionBudget lets somebody evict a rank, as far as is known, and raising that one
	// was written which does not, and the answer has not come.
	open, raising bool
}

// drainer finds and keeps places for ranks that are to leave their nodes.
type drainer struct {
	accounts *budget.Accounts
	args     *config.Args
	fleet    *topology.Fleet
	nodes    *nodeTable
	roster   *roster
	seats    *seating
	kept     *keptRooms
	starts   *starter
	mail     *mailbox
}

// drains reports whether it is asked that a node which stands be emptied.
func (t *nodeTable) drains(name string) bool { return t.draining[name] && t.stands(name) }

// assess finds out which ranks of a gang are to move, and sets places aside for them: for all that leave by themselves
// and have one, or else for each that could be the first to be evicted.
func (d *drainer) assess(g *gang, now time.Time) {
	was, since := g.drain, g.departs.since
	g.drain, g.departs.since = Drain{}, time.Time{}
	if !g.started() || g.opportunistic() || g.over() ||
		len(d.nodes.draining) == 0 && !d.fleet.AnyPlanned() && !g.room.moves {
		return
	}
	moving, drained, due := d.asked(g, now)
	g.drain.Moving, g.drain.Spares = moving, d.sparesDue(g, now)
	if len(g.room.held) == 0 || g.isLeaving(now) {
		since = time.Time{}
	}
	switch {
	case moving: // it has what is kept for it until it is planned
		g.inquiry.forget()
		d.keepOn(g, now)
	case len(due) > 0 && d.tires(g, due, since, now):
		g.inquiry.forget()
		d.letGo(g)
	case len(due) > 0 && d.relocate(g, due, &was, now):
		g.departs.since = cmp.Or(since, now)
	case len(drained) > 0:
		d.await(g, drained, &was, now)
	default:
		g.inquiry.forget()
		d.letGo(g)
	}
}

// await keeps room for the ranks that others are to evict, but not for ever: a cordon may be all that comes. Of ranks
// of one group one has it: when the first has moved, the next is looked at anew. Once nobody has come for gangDeadline
// the room is given back, after the Run's PodDisruptionBudget lets nobody go any more, and kept anew after as long.
func (d *drainer) await(g *gang, drained []DrainedRank, was *Drain, now time.Time) {
	deadline := d.args.GangDeadline.Duration
	g.drain.Ranks = drained
	if !slices.Equal(was.Ranks, drained) {
		g.patience.term = term{}
	}
	p := &g.patience
	switch {
	case p.since.IsZero() && p.open && len(g.room.held) > 0 && !now.Before(p.rests):
		g.drain.Asking = true // nobody may evict the rank any more before its place is another
		return
	case now.Before(p.rests):
		g.drain.Why, g.drain.Lapsed = was.Why, true
		if !p.open {
			d.letGo(g)
		}
		return
	case !p.since.IsZero() && d.keeps(g) && now.Before(p.since.Add(deadline)):
		g.room.until = p.since.Add(2 * deadline)
		g.drain.Asking = d.asks(g, g.inquiry.to, g.demand, now)
		return
	case !p.since.IsZero() && d.keeps(g):
		p.term = term{rests: now.Add(deadline)}
		g.drain.Lapsed = true
		g.drain.Why = fmt.Sprintf("rank %d was not evicted from node %s within %s while a place was kept for it; other "+
			"Runs may use that place until %s, when it is kept again", drained[0].Index, drained[0].Node, deadline,
			p.rests.UTC().Format(time.RFC3339))
		return
	}
	d.letGo(g)
	places, why := d.placesFor(g, g.demand, firsts(g, drained), false, now)
	g.drain.Why = why
	if why != "" {
		p.since = time.Time{}
		return
	}
	if p.since.IsZero() {
		p.since = now
	}
	d.setAside(g, places, now.Add(2*deadline))
	g.drain.Asking = d.asks(g, places, g.demand, now)
}

// firsts returns the first of some ranks of each group.
func firsts(g *gang, ranks []DrainedRank) (out []DrainedRank) {
	seen := map[int]bool{}
	for _, r := range ranks {
		if group := g.demand.GroupOf(r.Index); !seen[group] {
			seen[group] = true
			out = append(out, r)
		}
	}
	return out
}

// destination is where a rank is to go: to free GPUs, or to the place of a spare.
type destination struct {
	rank  DrainedRank
	node  string
	spare types.UID
}

// setAside keeps free room for ranks that are to move.
func (d *drainer) setAside(g *gang, to []destination, until time.Time) {
	var places []resolver.Holding
	for _, t := range to {
		if t.spare == "" {
			places = append(places, resolver.Holding{Node: t.node, GPUs: g.demand.GPUsPerPod,
				Beside: g.active.members[t.rank.Index].beside})
		}
	}
	slices.SortFunc(places, func(x, y resolver.Holding) int { return cmp.Compare(x.Node, y.Node) })
	if len(places) > 0 {
		d.kept.keepFor(g, places, until)
		g.room.moves = true
	}
}

// letGo gives it back.
func (d *drainer) letGo(g *gang) {
	if g.room.moves {
		d.kept.giveUpRoom(g)
	}
}

// keepOn keeps what is set aside for a gang, ranks of which have been told to go or are gone, until that is planned
// again. It is not kept on for one that should be long gone, nor for one that others do not make. A process that has
// begun since sets it aside anew.
func (d *drainer) keepOn(g *gang, now time.Time) {
	until, needed, stuck := now, false, false
	var going []DrainedRank
	for index, m := range g.active.between(0, g.active.size) {
		switch {
		case m == nil, m.stage == unplaced:
			_, paid := g.paidBefore(index) // what nobody goes on paying for is not waited for, such as one that is done
			needed = needed || !g.givesUp(index) && (m != nil || paid)
		case !m.leaving || m.stage != bound || m.hangs(now):
			stuck = stuck || g.moving[m.pod.UID] && m.stage == bound && m.hangs(now) // the whole group waits for it
		case g.moving[m.pod.UID]:
			needed, until = true, latest(until, d.seats.toldToGo(m.pod.UID))
		case d.nodes.drains(m.node) || d.mayLeave(m, now):
			going = append(going, DrainedRank{index, m.node})
			until = latest(until, d.seats.toldToGo(m.pod.UID))
		}
	}
	until = until.Add(d.args.GangDeadline.Duration)
	if len(g.room.held) > 0 && (needed && !stuck || len(going) > 0) {
		g.room.until = until
	} else if len(going) > 0 {
		if places, why := d.placesFor(g, g.demand, going, false, now); why == "" {
			d.setAside(g, places, until)
		}
	}
}

// keeps reports whether room is kept for a gang, all of which could be used.
func (d *drainer) keeps(g *gang) bool {
	return len(g.room.held) > 0 && !slices.ContainsFunc(g.room.held, func(uid types.UID) bool {
		node := d.nodes.byName[d.seats.held[uid].node]
		return node == nil || !d.nodes.serves(node)
	})
}

// asked returns the ranks of a gang that are on nodes which are being emptied, those that leave theirs by themselves,
// and whether others are not where they are to be.
func (d *drainer) asked(g *gang, now time.Time) (moving bool, drained, due []DrainedRank) {
	for index, m := range g.active.between(0, g.active.size) {
		switch {
		case m == nil, m.leaving, m.stage != bound && m.stage != finished, m.stage == bound && !d.nodes.stands(m.node):
			moving = true
			continue
		case m.stage != bound:
			continue
		}
		if d.nodes.drains(m.node) {
			drained = append(drained, DrainedRank{index, m.node})
		}
		if d.leaves(m, now) {
			due = append(due, DrainedRank{index, m.node})
		}
	}
	return moving, drained, due
}

// placesFor returns where some ranks of a gang that has a shape are to go: to spares that stand by, on nodes that stay
// in service if it is asked, else to free room, on nodes that other rules have not turned down. It says why there is
// none.
func (d *drainer) placesFor(g *gang, shape plan.Demand, ranks []DrainedRank, lasting bool,
	now time.Time) ([]destination, string) {
	domains, refusal := d.nodes.domainsOf(g)
	if refusal != nil {
		return nil, refusal.Message
	}
	turned := g.inquiry.turnedDown(now)
	spares := slices.Clone(g.spares.between(0, shape.Spares()))
	var missing []plan.Missing
	var free []DrainedRank
	var out []destination
	claim := g.claim(plan.Kept{})
	for _, r := range ranks {
		m := g.active.members[r.Index]
		at := slices.IndexFunc(spares, func(spare *member) bool {
			return spare != nil && spare.group() == m.group() && d.takesRank(spare, r.Index, lasting, now)
		})
		if at >= 0 {
			out = append(out, destination{r, spares[at].node, spares[at].pod.UID})
			spares = slices.Delete(spares, at, at+1)
			continue
		}
		free = append(free, r)
		missing = append(missing, g.missingPod(m, domains))
		claim.Kept[m.payer.key] = budget.Kept{Pods: claim.Kept[m.payer.key].Pods + 1, Relation: m.payer.relation}
	}
	if len(missing) == 0 {
		return out, ""
	}
	rejected := d.nodes.rejectedAll(g, g.model())
	assignments, refusal := d.starts.placeAside(g, shape, claim, missing, func(node string) bool {
		return turned[node] != "" || rejected != nil && rejected(node)
	}, now)
	if refusal != nil {
		return nil, fmt.Sprintf("rank %d on node %s has neither a spare nor free GPUs to move to: %s%s", free[0].Index,
			free[0].Node, refusal.Message, firstTurned(turned))
	}
	for _, r := range free {
		at := slices.IndexFunc(assignments, func(a plan.Assignment) bool { return !a.Spare && a.Index == r.Index })
		out = append(out, destination{r, assignments[at].Node, ""})
	}
	return out, ""
}

// takesRank reports whether a rank may take the place of a spare: it stands by, other rules have not turned its node
// down and, if it is asked, that stays in service.
func (d *drainer) takesRank(spare *member, index int, lasting bool, now time.Time) bool {
	if !d.seats.standsBy(spare, index) || spare.gang.inquiry.turnedDown(now)[spare.node] != "" {
		return false
	}
	_, shuts := d.outageOver(spare, now)
	return !lasting || !shuts
}

// Evictable notes whether the PodDisruptionBudget of a Run, as the API server has it, lets somebody evict a rank: what
// is kept for that rank is given to nobody else as long as it does.
func (b *Book) Evictable(run types.UID, yes bool) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g != nil {
		g.patience.open, g.patience.raising = yes, false
	}
}

// Raises notes that a PodDisruptionBudget of a Run is about to be written that lets nobody evict a rank.
func (b *Book) Raises(run types.UID) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if g := b.roster.gangs[run]; g != nil {
		g.patience.raising = true
	}
}

// Raising reports whether the answer to that has not come. Once the PodDisruptionBudget is seen as it was written it is
// known to be so: who decided to write it had seen it as it was before.
func (b *Book) Raising(run types.UID) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	return g != nil && g.patience.raising
}

// StuckDrain is a node that a Run's ranks cannot leave, and why, in the words of the Run's condition. Maintained says
// that it is to be left for maintenance, not for a drain.
type StuckDrain struct {
	Node, Run, Why string
	Maintained     bool
}

// StuckDrains returns the nodes that are not going to be emptied as it stands, by name and Run.
func (b *Book) StuckDrains() (out []StuckDrain) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	for g := range b.roster.living {
		if g.run == nil || len(g.drain.Ranks)+len(g.drain.Stay) == 0 {
			continue
		}
		run := keyOf(g.run).String()
		if c := waits(g.run, rqv1.ConditionDrainWaits); c != nil {
			for _, r := range g.drain.Ranks {
				out = append(out, StuckDrain{r.Node, run, c.Message, false})
			}
		}
		if c := waits(g.run, rqv1.ConditionMaintenanceAhead); c != nil {
			for _, r := range g.drain.Stay {
				out = append(out, StuckDrain{r.Node, run, c.Message, true})
			}
		}
	}
	slices.SortFunc(out, func(x, y StuckDrain) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Run, y.Run), cmp.Compare(x.Why, y.Why))
	})
	return slices.Compact(out)
}

// waits returns a condition of a Run if it is True; nil otherwise.
func waits(run *rqv1.Run, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(run.Status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}
