package book

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// tenants are the Runs that may be cut for a gang, as they are at one instant: whoever asks about other
// instants, or about some fabric domains alone, need not look at the book again.
type tenants struct {
	all    []*tenant
	sorted bool
	// published is when it was decided who is cut for the gang; zero if that is to come.
	published time.Time
}

// tenant is one of them, with what is asked about it.
type tenant struct {
	resolver.Candidate // without what may be had of it
	// runs says that it has started, and else it is starting: by its status, as of started. Ends is when it has ended at
	// the latest, zero if nobody knows, and shielded until when it may not be cut for the gang. Draws says that it may be
	// drawn in a lottery.
	runs                    bool
	started, ends, shielded time.Time
	total                   int   // GPUs that the Run asks for
	empty                   []int // ranks for which nothing is held or kept, in order
	draws                   bool
	full, demand            plan.Demand
	active, spares          []occupant // by index
}

// occupant is a pod of a tenant, or the room of one that is gone, which is kept for its rank.
type occupant struct {
	resolver.Holding
	index  int // of its rank; anyRank for a room that any rank may take
	domain string
	since  time.Time
	// stays says that nothing is to be had by cutting it, and beyond that it takes no part at the width that its Run has.
	stays, beyond bool
	borrowed      bool
	// unleased says of a spare that it cannot be dropped yet, and seat that a rank has its place.
	unleased, seat bool
	// room says that no pod is there, and lapses when the room is given up by itself; zero where nobody knows.
	room   bool
	lapses time.Time
}

// tenants returns the Runs that hold GPUs of a gang's flavor and may be cut for it. What is starting now runs by the
// time at which it may be cut.
func (i *candidates) tenants(g *gang, now time.Time) *tenants {
	out, memory := &tenants{}, make([]occupant, 0, len(i.seats.held))
	if g.activating() && g.reservation.Status.ActivatedAt != nil {
		out.published = g.reservation.Status.ActivatedAt.Time
	}
	for other := range i.roster.living {
		if other == g || other.opportunistic() || other.demand.Flavor != g.demand.Flavor {
			continue // shards leave whoever is given their room
		}
		if other.suspended() && out.published.IsZero() {
			continue // it leaves anyway
		}
		if _, runs := other.startedAt(); runs || other.starts() {
			t := i.tenant(other, g, now)
			t.active, memory = i.occupants(memory, other, &other.active, now)
			t.active = i.withRooms(t.active, other)
			t.spares, memory = i.occupants(memory, other, &other.spares, now)
			out.all = append(out.all, t)
		}
	}
	return out
}

// tenant returns a gang as a tenant without its pods.
func (i *candidates) tenant(g, cutFor *gang, now time.Time) *tenant {
	t := &tenant{Candidate: resolver.Candidate{Run: nameOf(g.run), UID: g.run.UID, Owner: g.run.Spec.Owner},
		total: int(g.run.Spec.Resources.TotalGPUs), full: g.full, demand: g.demand,
		empty:    g.emptyRanks(),
		shielded: i.shieldFrom(g, cutFor, now), draws: i.draws(g)}
	if p := i.roster.priorities.of(g.run); !p.Missing {
		t.Priority = &p.Value
	}
	t.started, t.runs = g.startedAt()
	t.Started = t.started
	t.ends, _ = g.endsAt(now)
	return t
}

// occupants returns the pods of a squad that hold something, in a piece of memory that all share, and the rest of that.
func (i *candidates) occupants(out []occupant, g *gang, s *squad, now time.Time) (mine, rest []occupant) {
	for _, m := range s.members {
		if m == nil || !m.placed() {
			continue
		}
		o := occupant{Holding: g.holding(m), index: m.part.Index, domain: i.fleet.DomainOf(m.node),
			since: i.seats.heldSince(m), stays: m.doomed() || m.hangs(now), beyond: m.part.Index >= s.size,
			borrowed: borrowed(m)}
		if m.part.Spare {
			o.unleased, o.seat = i.seats.leases[i.seats.leaseOf(m.pod)] == nil, g.seats(m.pod.UID)
		}
		out = append(out, o)
	}
	return out[:len(out):len(out)], out[len(out):]
}

// withRooms adds to the ranks of a gang the rooms that are kept for it: those are others' when it ends, or goes on
// without these ranks. It is not cut for the sake alone of those that are given back by themselves before long.
func (i *candidates) withRooms(active []occupant, g *gang) []occupant {
	var rooms []occupant
	for _, k := range i.seats.keepings(g) {
		if k.room == nil {
			continue
		}
		o := occupant{Holding: k.room.all(), index: k.index, domain: i.fleet.DomainOf(k.room.node), since: k.since,
			stays: len(k.room.awaitedBy) > 0, borrowed: k.borrowed, room: true}
		o.lapses, _ = g.lapsesAt(k.index)
		rooms = append(rooms, o)
	}
	if rooms == nil {
		return active
	}
	rooms = append(rooms, active...)
	slices.SortStableFunc(rooms, func(x, y occupant) int {
		return cmp.Or(cmp.Compare(x.index, y.index), strings.Compare(x.Node, y.Node))
	})
	return rooms
}

// at returns the Runs that hold GPUs in some fabric domains and may be cut at an instant: those that run and have not
// ended by then and are not shielded (R22). Of an activation that goes on, they had started when it was published. Who
// may be drawn depends on nobody's priority: an owner's odds would be others' otherwise.
func (t *tenants) at(domains map[string]bool, at time.Time) []resolver.Candidate {
	var out []resolver.Candidate
	t.sort()
	since := at
	if !t.published.IsZero() {
		since = t.published
	}
	for _, one := range t.all {
		if one.runs && !one.startedBefore(since) || !one.ends.IsZero() && !one.ends.After(at) {
			continue
		}
		candidate, ok := one.within(domains, since, at)
		switch {
		case !ok:
		case !one.shielded.After(at):
			out = append(out, candidate)
		case one.startedBefore(since): // no shield is for what is on loan
			out = append(out, resolver.Loans([]resolver.Candidate{candidate})...)
		}
	}
	return out
}

// mayGo returns by node how many GPUs those hold who may be cut for a gang, by the decision that it has if there is
// one, and which pods they have there.
func (i *candidates) mayGo(g *gang, now time.Time) (gpus map[string]int, pods map[string][]types.UID) {
	gpus, pods = map[string]int{}, map[string][]types.UID{}
	all, tenants := map[string]bool{}, i.tenants(g, now)
	for _, room := range i.fleet.RoomOf(g.full.Flavor) {
		all[room.Key] = true
	}
	at := tenants.at
	if a := g.activation; a != nil {
		now = a.At
		if a.returns() {
			at = tenants.loans
		}
	}
	for _, one := range at(all, now) {
		on := map[string]bool{}
		for _, h := range one.All() {
			gpus[h.Node] += h.GPUs
			on[h.Node] = true
		}
		for m := range i.roster.gangs[one.UID].all() {
			if m.placed() && on[m.node] {
				pods[m.node] = append(pods[m.node], m.pod.UID)
			}
		}
	}
	return gpus, pods
}

// loans returns what those that run have on loan in some fabric domains (R23).
func (t *tenants) loans(domains map[string]bool, at time.Time) []resolver.Candidate {
	run := tenants{published: t.published}
	for _, one := range t.all {
		if one.startedBefore(at) {
			run.all = append(run.all, one)
		}
	}
	return resolver.Loans(run.at(domains, at))
}

// sort has them be in order: only when somebody asks, which may be beside the book.
func (t *tenants) sort() {
	if !t.sorted {
		slices.SortFunc(t.all, func(x, y *tenant) int {
			return cmp.Or(cmp.Compare(x.Run.Namespace, y.Run.Namespace), cmp.Compare(x.Run.Name, y.Run.Name))
		})
		t.sorted = true
	}
}

// startedBefore reports what it does of a gang.
func (t *tenant) startedBefore(at time.Time) bool { return t.runs && beganBefore(t.started, at) }

// between returns the active pods with an index from first to before end.
func (t *tenant) between(first, end int) []occupant {
	at := func(index int) int {
		return sort.Search(len(t.active), func(i int) bool { return t.active[i].index >= index })
	}
	return t.active[at(first):at(end)]
}

// within returns what may be cut of a Run in some fabric domains at an instant and was there since before another;
// false if it holds nothing there.
func (t *tenant) within(domains map[string]bool, since, at time.Time) (resolver.Candidate, bool) {
	out := t.Candidate
	inside := func(o occupant) bool { return domains[o.domain] }
	runs := func(o occupant) bool { return !o.room || o.lapses.IsZero() }
	lies := func(o occupant) bool { return inside(o) && runs(o) && !o.beyond }
	if !slices.ContainsFunc(t.active, lies) && !slices.ContainsFunc(t.spares, lies) {
		return out, false
	}
	cuttable := func(o *occupant) bool {
		return !o.stays && o.since.Before(since) && (o.lapses.IsZero() || o.lapses.After(at))
	}
	for i := range t.spares {
		switch o := &t.spares[i]; {
		case !cuttable(o):
		case o.unleased:
			out.Rest = append(out.Rest, o.Holding) // it is no spare that can be dropped yet, but goes with the Run
		case inside(*o) && !o.seat:
			out.Spares = append(out.Spares, resolver.Spare{Index: o.index, Holds: []resolver.Holding{o.Holding}})
		}
	}
	width, reached := t.demand.Pods(), 0
	for least, step := t.demand.LeastPods, t.demand.StepPods; step > 0 && width-step >= least; width -= step {
		held := t.between(width-step, width)
		empty, _ := slices.BinarySearch(t.empty, width-step) // below the step
		if len(held) > 0 && width-step-empty < least {
			break // there are no more pods than that
		}
		s, reaches, kept := t.step(width, empty, out.Spares), false, false
		lost := !slices.ContainsFunc(held, runs)
		for _, o := range held {
			if !cuttable(&o) {
				continue
			}
			s.Holds = append(s.Holds, o.Holding)
			s.Borrowed = s.Borrowed || o.borrowed
			reaches = reaches || inside(o) && (runs(o) || lost)
			kept = kept || inside(o)
		}
		if len(s.Holds) == 0 {
			continue // a cohort without places yet
		}
		if !reaches && !kept {
			break // what lies above it would have to go first, in vain
		}
		out.Steps = append(out.Steps, s)
		if reaches {
			reached = len(out.Steps)
		}
	}
	out.Steps = out.Steps[:reached]
	for _, o := range t.between(anyRank, width) {
		if cuttable(&o) {
			out.Rest = append(out.Rest, o.Holding)
			out.Ticket = out.Ticket || t.draws && inside(o) && runs(o)
		}
	}
	return out, out.Ticket || len(out.Spares) > 0 || len(out.Steps) > 0
}

// step returns the elastic step that ends at a width in pods, with the spares that go with it, and without what its
// pods hold. Some ranks are empty below the step.
func (t *tenant) step(width, empty int, spares []resolver.Spare) resolver.Step {
	narrower := width - t.demand.StepPods
	s := resolver.Step{Width: narrower * t.demand.GPUsPerPod}
	s.Loan = s.Width-empty*t.demand.GPUsPerPod >= t.total
	for _, spare := range spares {
		if spare.Index >= t.full.At(narrower).Spares() && spare.Index < t.full.At(width).Spares() {
			s.Spares = append(s.Spares, spare.Index)
		}
	}
	return s
}
