package book

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// planExtras places each missing spare of a running gang, or each belated rank, that there is room for, lets it into
// the queue, and returns why the first of the others is refused. The pod that plans is in the queue already.
func (x *starter) planExtras(g *gang, of *squad, pod *corev1.Pod, now time.Time) (first *plan.Refusal) {
	if of.first() == nil {
		return nil
	}
	domains, refusal := x.nodes.domainsOf(g)
	if refusal != nil {
		refusal.Spare, refusal.Belated = of == &g.spares, of == &g.active
		return refusal
	}
	x.seats.awaitOwn(g, domains, anyScope)
	for _, m := range of.between(0, of.size) {
		if m == nil || m.stage != unplaced || m.leaving || !m.extra() {
			continue
		}
		assignments, refusal := x.planExtra(g, m, domains, now)
		if refusal != nil {
			first = cmp.Or(first, refusal)
			continue
		}
		if !m.part.Spare && x.places.mustAsk(g, m.pod, assignments, now) {
			x.places.ask(g, nil)
		}
		x.places.assume(g, assignments, now)
		if g.demand.Confined || g.demand.OneDomain {
			domains[g.scope(m)] = assignments[0].Domain
		}
		if m.pod != pod {
			x.mail.activate(m.pod)
		}
	}
	return first
}

// planExtra finds a place for a spare or a belated rank. What it costs is left to who has a date or is first in line,
// as what a Run grows by is; but a rank does not leave it to who is first and waits for what its own group is to give
// back.
func (x *starter) planExtra(g *gang, m *member, domains map[int]string, now time.Time) ([]plan.Assignment,
	*plan.Refusal) {
	missing, claim := []plan.Missing{g.missingPod(m, domains)}, g.claim(nil)
	claim.Owed = x.agenda.debts.keeps(g, true, now)
	rejected := x.nodes.unfitForSpare(m, now)
	if !m.part.Spare {
		if !g.comesInTurn(m) {
			claim.Owed = x.agenda.debts.keepsFromBelated(g, now)
		}
		rejected = x.agenda.unintended(x.nodes.rejecting(g, m.pod, g.fled()), now)
		claim.Most = x.seats.mostBeside(g, claim.Most)
	}
	d := g.demand
	d.Beside = g.asks(m.part, nil)
	assignments, refusal := plan.Gang(x.fleet, x.accounts, d, claim, missing, rejected, now)
	switch {
	case refusal == nil:
		return assignments, nil
	case !m.part.Spare && g.unlay(false, now):
		return x.planExtra(g, m, domains, now)
	case !m.part.Spare && !g.returns && len(g.evictors())+len(g.fled()) > 0:
		g.returns = true
		defer func() { g.returns = false }()
		return x.planExtra(g, m, domains, now)
	}
	refusal.Spare, refusal.Belated = m.part.Spare, !m.part.Spare
	x.nodes.blame(g, g.modelOf(m.part), refusal, now, func(rejected func(string) bool) bool {
		d, claim := d, claim
		d.Beside, claim.Most = nil, nil
		return plan.Fits(x.fleet, x.accounts, d, claim, missing, rejected, now)
	})
	return nil, refusal
}

// releaseBelated takes back the places that belated ranks have of some.
func (p *placement) releaseBelated(places []Place) {
	for _, place := range places {
		if m := p.roster.members[place.Pod.UID]; m != nil && m.stage == assigned && m.belated() {
			p.release(m)
		}
	}
}

// comesInTurn reports whether a rank's pod follows one that has completed in a group that has pods in turns: such pods
// would have what the first in line waits for again and again. In groups of other kinds who runs may wait for it.
func (g *gang) comesInTurn(m *member) bool {
	key, _ := group.KeyOf(g.run)
	return group.InTurns(key) && g.comesAfterDone(m.part.Index)
}
