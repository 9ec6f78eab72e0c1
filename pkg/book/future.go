package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// furthest is how many Reservations ahead of its own a forecast looks at: the date of a Run that is further back is of
// little use to anybody.
const furthest = 64

// future returns what a gang asks for, and what is known of the time to come.
func (b *Book) future(g *gang, pod *corev1.Pod, now time.Time) (forecast.State, forecast.Ask, *plan.Refusal) {
	least := g.narrowest() // what a malleable Run waits for
	if g.unpaid {
		return b.stateFor(g, now), forecast.Ask{Demand: least, Claim: b.claim(g, nil), Missing: everyPod(least), Excluded: b.rejected(g, pod)}, nil
	}
	missing, refusal := b.missingOf(g)
	ask := forecast.Ask{Demand: least, Claim: b.claim(g, nil), Missing: least.Within(missing), Excluded: b.rejected(g, pod)}
	state := b.stateFor(g, now)
	if !g.activating() && b.rebuffed(g, now) != nil {
		state.Candidates = nobody
	}
	return state, ask, refusal
}

// stateFor returns what is known of the time to come, as it concerns a gang.
func (b *Book) stateFor(g *gang, now time.Time) forecast.State {
	state := forecast.State{
		Fleet: b.fleet, Accounts: b.accounts, Now: now, NotBefore: b.refusedSince(g).Add(b.args.ReservationLead.Duration),
		WindowDelay: b.args.WindowDelay.Duration, Ahead: b.aheadOf(g),
		Candidates: func(domains map[string]bool, at time.Time) []resolver.Candidate {
			return b.tenants(g, domains, at, now)
		},
	}
	state.Releases = b.departures(now)
	for _, other := range b.gangs {
		if r := b.lapses(other, now); r != nil && other != g {
			state.Releases = append(state.Releases, *r)
		}
		if other == g || other.opportunistic() || !other.started() && !other.starts() {
			continue
		}
		if end, bounded := other.end(now); bounded && end.After(now) { // else it is leaving
			state.Releases = append(state.Releases, b.releaseOf(other, end.Add(b.graceOfAll(other))))
		}
		if until := b.shieldFrom(other, g, now); until.After(now) {
			state.Shields = append(state.Shields, until)
		}
	}
	for i := range state.Ahead {
		state.Shields = append(state.Shields, state.Ahead[i].Shielded)
	}
	slices.SortFunc(state.Releases, func(x, y forecast.Release) int {
		return cmp.Or(x.At.Compare(y.At), slices.Compare(x.Leases, y.Leases))
	})
	slices.SortFunc(state.Shields, time.Time.Compare)
	state.Shields = slices.CompactFunc(state.Shields, time.Time.Equal)
	return state
}

// startedAt returns when a Run that runs started.
func (g *gang) startedAt() (time.Time, bool) {
	if g.run == nil {
		return time.Time{}, false
	}
	return g.run.StartedAt()
}

// end returns when a Run that runs ends by its maxDuration; one that is about to start, as if it started now.
func (g *gang) end(now time.Time) (time.Time, bool) {
	at, ok := g.startedAt()
	if !ok {
		at = now
	}
	end := g.run.Spec.Until(at)
	return end, !end.IsZero()
}

// starts reports whether a Run that waits has its places. Pods that are leaving are of an earlier start.
func (g *gang) starts() bool {
	return g.run != nil && g.run.Status.Phase == rqv1.RunPending && g.underWay() && g.touches(func(m *member) bool { return !m.leaving })
}

// releaseOf returns what a Run gives back when it ends.
func (b *Book) releaseOf(g *gang, at time.Time) forecast.Release {
	r := forecast.Release{At: at}
	for m := range g.all() {
		if m.placed() && !m.outgoing() {
			r.Holds = append(r.Holds, g.holding(m))
			r.Leases = append(r.Leases, leaseName(m.pod).String())
		}
	}
	return r
}

// holding returns the GPUs that a member holds.
func (g *gang) holding(m *member) resolver.Holding {
	return resolver.Holding{Node: m.node, GPUs: g.demand.GPUsPerPod}
}

// shieldOf returns for how long a Run is not cut that is shielded when it starts: a checkpoint interval, or what configuration
// says, and never longer than that allows: the interval is the Run's own word (R22).
func (b *Book) shieldOf(run *rqv1.Run) time.Duration {
	shield := b.args.ActivationShield.Duration
	if r := run.Spec.Runtime; r != nil && r.Checkpoint != nil {
		shield = r.Checkpoint.Duration
	}
	return min(shield, b.args.MaxShield.Duration)
}

// shield returns until when a Run that runs, or starts, may not be cut: because it was started by an activation, or had been
// drawn before (R22), and not within the second in which it started, since its status would not tell that it did so before.
// One that is starting has not started: it is not cut before it has, and whoever waits for what it holds has a date after that.
func (b *Book) shield(g *gang, now time.Time) time.Time {
	at, ok := g.startedAt()
	if !ok {
		at = b.startsAt(g, now)
	}
	if g.activation != nil || b.reservations.activated(g.run.UID, at) || b.reservations.drawn(g.run.UID, at) {
		return at.Add(max(time.Second, b.shieldOf(g.run)))
	}
	return at.Add(time.Second)
}

// startsAt returns when, at a guess, a Run starts that has its places: soon, but not while those have time to leave who are
// cut for it.
func (b *Book) startsAt(g *gang, now time.Time) time.Time {
	left := now
	switch notice := b.args.NoticePeriod.Duration; {
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

// aheadOf returns the promises made to others, in order of their dates and of age. What they hold from then on matters to a
// gang only if its own date is not before; which of them comes first on the same date is a matter of age.
func (b *Book) aheadOf(g *gang) []forecast.Ahead {
	var promised []*gang
	for _, other := range b.waiting.gangs {
		if other != g && other.promise != nil && other.run != nil {
			promised = append(promised, other)
		}
	}
	slices.SortFunc(promised, func(x, y *gang) int { return cmp.Or(x.promise.At.Compare(y.promise.At), byAge(x, y)) })
	var out []forecast.Ahead
	for _, other := range promised[:min(len(promised), furthest)] {
		a := b.ahead(other)
		a.Younger = byAge(other, g) > 0
		out = append(out, a)
	}
	return out
}

func (b *Book) ahead(g *gang) forecast.Ahead {
	at := g.promise.At
	a := forecast.Ahead{Run: nameOf(g.run), Owner: g.run.Spec.Owner, At: at, Shielded: at.Add(b.shieldOf(g.run)), Holds: g.promise.Nodes,
		Charges: map[string]budget.Charge{}}
	for i, paid := range paidBy(g.promise) {
		role := rqv1.RoleActive
		if paid.Spare {
			role = rqv1.RoleSpare
		}
		a.Charges[fmt.Sprintf("ahead/%s/%d", g.run.UID, i)] = budget.Charge{
			Payer: paid.Payer, Owner: g.run.Spec.Owner, Run: string(g.run.UID), Relation: paid.Relation, Role: role,
			GPUs: paid.GPUs, Rate: b.accounts.RateOf(role), Start: at, Until: g.run.Spec.Until(at),
		}
	}
	return a
}

// paidBy returns what a promise is going to charge. A Reservation that was read at a start names the payers alone, until it is
// worked out anew: as if all were active pods of their owners.
func paidBy(p *forecast.Promise) []forecast.Paid {
	if p.Paid != nil {
		return p.Paid
	}
	var out []forecast.Paid
	for _, payer := range p.Payers {
		key := budget.Key{Budget: payer.Budget, Envelope: payer.Envelope}
		out = append(out, forecast.Paid{Payer: key, Relation: rqv1.RelationOwn, GPUs: int(payer.GPUs)})
	}
	return out
}

func nameOf(o metav1.Object) rqv1.NamespacedName {
	return rqv1.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// tenants returns the Runs that hold GPUs in some fabric domains and may be cut at an instant for a gang: those that run and
// have not ended by then and are not shielded from it (R22). Of an activation that goes on, they had started when it was
// published. What is starting now runs by the time at which it may be cut.
func (b *Book) tenants(g *gang, domains map[string]bool, at, now time.Time) []resolver.Candidate {
	var out []resolver.Candidate
	since := at
	if g.activating() && g.reservation.Status.ActivatedAt != nil {
		since = g.reservation.Status.ActivatedAt.Time
	}
	for _, other := range b.gangs {
		if other.opportunistic() {
			continue // its shards leave whoever is given their room
		}
		if other == g || !other.startedBefore(since) && !other.starts() || other.demand.Flavor != g.demand.Flavor {
			continue
		}
		if end, bounded := other.end(now); bounded && !end.After(at) {
			continue
		}
		if b.shieldFrom(other, g, now).After(at) {
			continue
		}
		if tenant, ok := b.tenant(other, domains, since, now); ok {
			out = append(out, tenant)
		}
	}
	slices.SortFunc(out, func(x, y resolver.Candidate) int {
		return cmp.Or(cmp.Compare(x.Run.Namespace, y.Run.Namespace), cmp.Compare(x.Run.Name, y.Run.Name))
	})
	return out
}

// touches reports whether any member is where asked for.
func (g *gang) touches(within func(*member) bool) bool {
	for m := range g.all() {
		if m.placed() && within(m) {
			return true
		}
	}
	return false
}

// startedBefore reports whether a Run runs and started before an instant, as its status tells it, in whole seconds: only such
// a Run is ended by an activation at that instant.
func (g *gang) startedBefore(at time.Time) bool {
	started, ok := g.startedAt()
	return ok && started.Before(at.Truncate(time.Second))
}

// tenant returns what may be cut of a Run in some fabric domains and was there at an instant; false if it holds nothing
// there.
func (b *Book) tenant(g *gang, domains map[string]bool, since, now time.Time) (resolver.Candidate, bool) {
	t := resolver.Candidate{Run: nameOf(g.run), UID: g.run.UID, Owner: g.run.Spec.Owner}
	within := func(m *member) bool { return domains[b.fleet.DomainOf(m.node)] }
	if !g.touches(within) {
		return t, false
	}
	cuttable := func(m *member) bool {
		return m != nil && m.placed() && !m.doomed() && b.heldSince(m).Before(since) && !m.hangs(now)
	}
	for _, m := range g.spares.members {
		switch {
		case !cuttable(m):
		case b.leases[leaseName(m.pod)] == nil:
			t.Rest = append(t.Rest, g.holding(m)) // it is no spare that can be dropped yet, but goes with the Run
		case within(m) && !g.seats(m.pod.UID):
			t.Spares = append(t.Spares, resolver.Spare{Index: m.part.Index, Holds: []resolver.Holding{g.holding(m)}})
		}
	}
	width := g.demand.Pods()
	for least, step := g.demand.LeastPods, g.demand.StepPods; step > 0 && width-step >= least; width -= step {
		s, inside := resolver.Step{Width: (width - step) * g.demand.GPUsPerPod}, false
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
