package book

import (
	"cmp"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// candidates says which Runs may be cut for a gang, and what of them (R19, R22).
type candidates struct {
	args   *config.Args
	fleet  *topology.Fleet
	roster *roster
	agenda *agenda
	seats  *seating
}

// tenants returns the Runs that hold GPUs in some fabric domains and may be cut at an instant for a gang: those that
// run and have not ended by then and are not shielded from it (R22). Of an activation that goes on, they had started
// when it was published. What is starting now runs by the time at which it may be cut.
func (i *candidates) tenants(g *gang, domains map[string]bool, at, now time.Time) []resolver.Candidate {
	var out []resolver.Candidate
	since := at
	if g.activating() && g.reservation.Status.ActivatedAt != nil {
		since = g.reservation.Status.ActivatedAt.Time
	}
	for other := range i.roster.living {
		if other.opportunistic() {
			continue // its shards leave whoever is given their room
		}
		if other == g || !other.startedBefore(since) && !other.starts() || other.demand.Flavor != g.demand.Flavor {
			continue
		}
		if end, bounded := other.endsAt(now); bounded && !end.After(at) {
			continue
		}
		tenant, ok := i.tenant(other, domains, since, now)
		switch {
		case !ok:
		case !i.shieldFrom(other, g, now).After(at):
			out = append(out, tenant)
		case other.startedBefore(since): // no shield is for what is on loan
			out = append(out, resolver.Loans([]resolver.Candidate{tenant})...)
		}
	}
	slices.SortFunc(out, func(x, y resolver.Candidate) int {
		return cmp.Or(cmp.Compare(x.Run.Namespace, y.Run.Namespace), cmp.Compare(x.Run.Name, y.Run.Name))
	})
	return out
}

// anyLent reports whether anybody has grown beyond its total into what a gang could use.
func (i *candidates) anyLent(to *gang) bool {
	for g := range i.roster.classes.elastic {
		same := g != to && g.shape == nil && g.full.Flavor == to.full.Flavor
		if same && g.demand.GPUs() > int(g.run.Spec.Resources.TotalGPUs) {
			return true
		}
	}
	return false
}

// loans returns what the Runs that run have on loan in some fabric domains (R23).
func (i *candidates) loans(g *gang, domains map[string]bool, at, now time.Time) []resolver.Candidate {
	return slices.DeleteFunc(resolver.Loans(i.tenants(g, domains, at, now)), func(t resolver.Candidate) bool {
		return !i.roster.gangs[t.UID].startedBefore(at)
	})
}

// tenant returns what may be cut of a Run in some fabric domains and was there at an instant; false if it holds nothing
// there.
func (i *candidates) tenant(g *gang, domains map[string]bool, since, now time.Time) (resolver.Candidate, bool) {
	t := resolver.Candidate{Run: nameOf(g.run), UID: g.run.UID, Owner: g.run.Spec.Owner}
	within := func(m *member) bool { return domains[i.fleet.DomainOf(m.node)] }
	if !g.touches(within) {
		return t, false
	}
	cuttable := func(m *member) bool {
		return m != nil && m.placed() && !m.doomed() && i.seats.heldSince(m).Before(since) && !m.hangs(now)
	}
	for _, m := range g.spares.members {
		switch {
		case !cuttable(m):
		case i.seats.leases[leaseName(m.pod)] == nil:
			t.Rest = append(t.Rest, g.holding(m)) // it is no spare that can be dropped yet, but goes with the Run
		case within(m) && !g.seats(m.pod.UID):
			t.Spares = append(t.Spares, resolver.Spare{Index: m.part.Index, Holds: []resolver.Holding{g.holding(m)}})
		}
	}
	width := g.demand.Pods()
	for least, step := g.demand.LeastPods, g.demand.StepPods; step > 0 && width-step >= least; width -= step {
		s, inside := resolver.Step{Width: (width - step) * g.demand.GPUsPerPod}, false
		s.Loan = s.Width >= int(g.run.Spec.Resources.TotalGPUs)
		for _, spare := range t.Spares {
			if spare.Index >= g.full.At(width-step).Spares() && spare.Index < g.full.At(width).Spares() {
				s.Spares = append(s.Spares, spare.Index)
			}
		}
		for _, m := range g.active.between(width-step, width) {
			if !cuttable(m) {
				continue
			}
			s.Holds = append(s.Holds, g.holding(m))
			s.Borrowed = s.Borrowed || m.payer.relation == rqv1.RelationSponsor
			inside = inside || within(m)
		}
		if len(s.Holds) == 0 {
			continue // a cohort without places yet
		}
		if !inside {
			break // what lies above it would have to go first, in vain
		}
		t.Steps = append(t.Steps, s)
	}
	for _, m := range g.active.between(0, width) {
		if cuttable(m) {
			t.Rest = append(t.Rest, g.holding(m))
			t.Ticket = t.Ticket || within(m)
		}
	}
	return t, t.Ticket || len(t.Spares) > 0 || len(t.Steps) > 0
}

// shieldOf returns for how long a Run is not cut that is shielded when it starts: a checkpoint interval, or what
// configuration says, and never longer than that allows: the interval is the Run's own word (R22).
func (i *candidates) shieldOf(run *rqv1.Run) time.Duration {
	shield := i.args.ActivationShield.Duration
	if r := run.Spec.Runtime; r != nil && r.Checkpoint != nil {
		shield = r.Checkpoint.Duration
	}
	return min(shield, i.args.MaxShield.Duration)
}

// shield returns until when a Run that runs, or starts, may not be cut: because it was started by an activation, or had
// been drawn before (R22), and not within the second in which it started, since its status would not tell that it did
// so before. One that is starting has not started: it is not cut before it has, and whoever waits for what it holds has
// a date after that.
func (i *candidates) shield(g *gang, now time.Time) time.Time {
	at, ok := g.startedAt()
	if !ok {
		at = i.startsAt(g, now)
	}
	if g.activation != nil && !g.activation.returns() || i.agenda.reservations.activated(g.run.UID, at) ||
		i.agenda.reservations.drawn(g.run.UID, at) {
		return at.Add(max(time.Second, i.shieldOf(g.run)))
	}
	return at.Add(time.Second)
}

// startsAt returns when, at a guess, a Run starts that has its places: soon, but not while those have time to leave who
// are cut for it.
func (i *candidates) startsAt(g *gang, now time.Time) time.Time {
	left := now
	switch notice := i.args.NoticePeriod.Duration; {
	case g.awaiting == 0:
	case g.activation != nil:
		left = g.activation.At.Add(notice)
	case g.activating() && g.reservation.Status.ActivatedAt != nil:
		left = g.reservation.Status.ActivatedAt.Add(notice)
	default:
		left = g.freeBy
	}
	return latest(now, left).Add(soon)
}

// shieldFrom returns until when a Run may not be cut for another: until its shield is over and, if the other has been
// cut for it, as long again from when that was decided, whether or not it has started anew since. No longer than that:
// who loses once is to have a date like anybody else (R17, R22).
func (i *candidates) shieldFrom(g, other *gang, now time.Time) time.Time {
	until := i.shield(g, now)
	if other.run == nil {
		return until
	}
	if at := i.agenda.reservations.lastCut(g.run.UID, other.run.UID); !at.IsZero() {
		until = latest(until, at.Add(i.shieldOf(g.run)))
	}
	return until
}
