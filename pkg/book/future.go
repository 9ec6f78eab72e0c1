package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	missing, refusal := b.missingOf(g)
	least := g.narrowest() // what a malleable Run waits for
	missing = slices.DeleteFunc(missing, func(m plan.Missing) bool { return !least.Has(m) })
	ask := forecast.Ask{Demand: least, Claim: b.claim(g, nil), Missing: missing, Excluded: b.rejected(g, pod)}
	return b.stateFor(g, now), ask, refusal
}

// stateFor returns what is known of the time to come, as it concerns a gang.
func (b *Book) stateFor(g *gang, now time.Time) forecast.State {
	state := forecast.State{
		Fleet: b.fleet, Accounts: b.accounts, Now: now, NotBefore: g.since.Add(b.args.ReservationLead.Duration),
		WindowDelay: b.args.WindowDelay.Duration, Ahead: b.aheadOf(g),
		Tenants: func(domains map[string]bool, at time.Time) []resolver.Tenant { return b.tenants(g, domains, at) },
	}
	for _, other := range b.gangs {
		if !other.started() || other == g {
			continue
		}
		if end, bounded := other.end(); bounded && end.After(now) {
			state.Releases = append(state.Releases, b.releaseOf(other, end))
		}
		if until, shielded := b.shield(other); shielded && until.After(now) {
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
	started := meta.FindStatusCondition(g.run.Status.Conditions, rqv1.ConditionStarted)
	if !g.started() || started == nil || started.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return started.LastTransitionTime.Time, true
}

// end returns when a Run that runs ends by its maxDuration.
func (g *gang) end() (time.Time, bool) {
	at, ok := g.startedAt()
	if r := g.run.Spec.Runtime; ok && r != nil && r.MaxDuration != nil {
		return at.Add(r.MaxDuration.Duration), true
	}
	return time.Time{}, false
}

// releaseOf returns what a Run gives back when it ends.
func (b *Book) releaseOf(g *gang, at time.Time) forecast.Release {
	r := forecast.Release{At: at}
	for m := range g.all() {
		if m.placed() && !m.doomed() {
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

// shieldOf returns for how long a Run is not cut once others have been cut for it: a checkpoint interval, or what
// configuration says (R22).
func (b *Book) shieldOf(run *rqv1.Run) time.Duration {
	if r := run.Spec.Runtime; r != nil && r.Checkpoint != nil {
		return r.Checkpoint.Duration
	}
	return b.args.ActivationShield.Duration
}

// shield returns until when a Run may not be cut because it was started by an activation (R22).
func (b *Book) shield(g *gang) (time.Time, bool) {
	at, ok := g.startedAt()
	if !ok || !b.reservations.activated(g.run.UID, at) {
		return time.Time{}, false
	}
	return at.Add(b.shieldOf(g.run)), true
}

// aheadOf returns the Reservations of others that come before a gang's, in order of their dates and of age.
func (b *Book) aheadOf(g *gang) []forecast.Ahead {
	own := g.since.Add(b.args.ReservationLead.Duration)
	if g.promise != nil {
		own = g.promise.At
	}
	var before []*gang
	for _, other := range b.waiting.gangs {
		if other == g || other.promise == nil || other.run == nil {
			continue
		}
		if c := other.promise.At.Compare(own); c < 0 || c == 0 && byAge(other, g) < 0 {
			before = append(before, other)
		}
	}
	slices.SortFunc(before, func(x, y *gang) int { return cmp.Or(x.promise.At.Compare(y.promise.At), byAge(x, y)) })
	var out []forecast.Ahead
	for _, other := range before[:min(len(before), furthest)] {
		out = append(out, b.ahead(other))
	}
	return out
}

func (b *Book) ahead(g *gang) forecast.Ahead {
	at := g.promise.At
	a := forecast.Ahead{Run: nameOf(g.run), Owner: g.run.Spec.Owner, At: at, Shielded: at.Add(b.shieldOf(g.run)), Holds: g.promise.Nodes,
		Charges: map[string]budget.Charge{}}
	for i, payer := range g.promise.Payers {
		charge := budget.Charge{
			Payer: budget.Key{Budget: payer.Budget, Envelope: payer.Envelope}, Owner: g.run.Spec.Owner, Run: string(g.run.UID),
			Relation: rqv1.RelationOwn, Role: rqv1.RoleActive, GPUs: int(payer.GPUs), Rate: budget.FullRate, Start: at,
		}
		if r := g.run.Spec.Runtime; r != nil && r.MaxDuration != nil {
			charge.Until = at.Add(r.MaxDuration.Duration)
		}
		a.Charges[fmt.Sprintf("ahead/%s/%d", g.run.UID, i)] = charge
	}
	return a
}

func nameOf(o metav1.Object) rqv1.NamespacedName {
	return rqv1.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// tenants returns the Runs that hold GPUs in some fabric domains and may be cut at an instant for a gang: those that run and
// have not ended by then, are not shielded (R22), and were not started at the cost of the
// gang's Run, so that no two Runs cut each other back and forth.
func (b *Book) tenants(g *gang, domains map[string]bool, at time.Time) []resolver.Tenant {
	var out []resolver.Tenant
	for _, other := range b.gangs {
		if other == g || !other.started() || other.demand.Flavor != g.demand.Flavor || b.reservations.hasCut(other.run.UID, g.run.UID) {
			continue
		}
		if end, bounded := other.end(); bounded && !end.After(at) {
			continue
		}
		if until, shielded := b.shield(other); shielded && until.After(at) {
			continue
		}
		if tenant, ok := b.tenant(other, domains); ok {
			out = append(out, tenant)
		}
	}
	slices.SortFunc(out, func(x, y resolver.Tenant) int {
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

// tenant returns what may be cut of a Run in some fabric domains; false if it holds nothing there.
func (b *Book) tenant(g *gang, domains map[string]bool) (resolver.Tenant, bool) {
	t := resolver.Tenant{Run: nameOf(g.run), UID: g.run.UID, Owner: g.run.Spec.Owner, Opportunistic: g.run.Spec.Opportunistic}
	within := func(m *member) bool { return domains[b.fleet.DomainOf(m.node)] }
	if !g.touches(within) {
		return t, false
	}
	cuttable := func(m *member) bool { return m != nil && m.placed() && !m.doomed() }
	for _, m := range g.spares.members {
		if cuttable(m) && within(m) && !g.seats(m.pod.UID) {
			t.Spares = append(t.Spares, resolver.Spare{Index: m.part.Index, Holds: []resolver.Holding{g.holding(m)}})
		}
	}
	width := g.demand.Pods()
	for least, step := g.demand.LeastPods, g.demand.StepPods; step > 0 && width-step >= least; width -= step {
		s, inside := resolver.Step{Width: (width - step) * g.demand.GPUsPerPod}, false
		for _, m := range g.active.members[width-step : width] {
			if !cuttable(m) {
				continue
			}
			s.Holds = append(s.Holds, g.holding(m))
			s.Borrowed = s.Borrowed || m.payer.relation == rqv1.RelationSponsor
			inside = inside || within(m)
		}
		if !inside {
			break // what lies above it would have to go first, in vain
		}
		t.Steps = append(t.Steps, s)
	}
	for _, m := range g.active.members[:width] {
		if cuttable(m) {
			t.Rest = append(t.Rest, g.holding(m))
			t.Ticket = t.Ticket || within(m)
		}
	}
	return t, t.Ticket || len(t.Spares) > 0 || len(t.Steps) > 0
}
