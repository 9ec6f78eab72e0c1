package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// variantPlan plans missing pods of a gang that differ, one variant beside the other.
type variantPlan struct {
	*starter
	gang   *gang
	demand plan.Demand
	claim  plan.Claim // what is left of it beside what is planned so far, which fork has
	fork   *plan.Fork
	now    time.Time
	vain   int // how many domains have been tried in vain
}

// unit is missing pods that share a domain.
type unit struct {
	variants []*variant
	pods     int
	bound    bool // to the domain where the others of their group are
	usable   int  // nodes, by those of its pods that may use the fewest
}

// vainDomains is how many domains are tried in vain for one gang at most: each takes a plan while the book waits.
const vainDomains = 64

// planVariants plans missing pods of a gang, each by what it may use itself: those first that may use the fewest nodes,
// and the others beside them.
func (x *starter) planVariants(g *gang, d plan.Demand, claim plan.Claim, missing []plan.Missing,
	rejected func(string) bool, now time.Time) ([]plan.Assignment, *plan.Refusal) {
	if g.variants() == nil {
		return plan.Gang(x.fleet, x.accounts, d, claim, missing, rejected, now)
	}
	variants := g.missingBy(missing)
	for _, s := range variants {
		s.barred = either(either(rejected, x.nodes.barred(d.Flavor, s.pod)), s.ban.has())
		s.usable, s.in = 0, map[string]bool{}
		for node := range x.nodes.ofFlavor[d.Flavor] {
			if s.barred == nil || !s.barred(node) {
				s.usable++
				s.in[x.fleet.DomainOf(node)] = true
			}
		}
	}
	slices.SortStableFunc(variants, func(a, b *variant) int { return cmp.Compare(a.usable, b.usable) })
	p := variantPlan{starter: x, gang: g, demand: d, claim: claim, fork: plan.NewFork(x.fleet, x.accounts), now: now}
	defer p.fork.Revert()
	out, refusal := p.place(variants, "")
	if refusal == nil || len(variants) < 2 {
		return out, refusal
	}
	if d.Confined || d.OneDomain { // the domains that a variant would choose may have no room for the others
		p.fork.Revert()
		p.claim = claim
		if out, ok := p.search(p.units(variants)); ok {
			return out, nil
		}
	}
	p.fork.Revert()
	p.claim = claim
	if why := p.explain(variants, missing, rejected); why != nil {
		return nil, why
	}
	if refusal.AboutMoney() {
		return nil, refusal
	}
	wanted := len(missing) * d.GPUsPerPod
	return nil, &plan.Refusal{Reason: plan.InsufficientGPUs, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: wanted,
		ShortGPUs: refusal.ShortGPUs, Message: fmt.Sprintf("%d %s GPUs are needed, and as many are free, but its pods "+
			"differ in which nodes they may use: no place was found for all of them beside one another", wanted, d.Flavor)}
}

// place plans variants one beside the other, in a domain if one is given and where ranks are free to choose.
func (p *variantPlan) place(variants []*variant, domain string) (out []plan.Assignment, _ *plan.Refusal) {
	g, d := p.gang, p.demand
	p.claim.Most, p.claim.Kept = maps.Clone(p.claim.Most), maps.Clone(p.claim.Kept)
	for _, s := range variants {
		parts := slices.Clone(s.missing)
		for i := range parts {
			if parts[i].Domain == "" && (d.Confined || d.OneDomain) {
				parts[i].Domain = domain
			}
		}
		g.gather(out, parts)
		assignments, refusal := p.alone(s, parts)
		if refusal != nil {
			return nil, refusal
		}
		for _, a := range assignments {
			m := &member{gang: g, part: a.Part, node: a.Node, payer: payer{a.Payer, a.Relation}}
			p.fork.Take(a.Node, d.GPUsPerPod, s.beside)
			p.fork.Open("planned/"+a.Part.PodName(string(g.run.UID)), p.seats.chargeOf(m, p.now))
			if most, bounded := p.claim.Most[a.Node]; bounded {
				p.claim.Most[a.Node] = max(0, most-1)
			}
			if kept := p.claim.Kept[a.Payer]; kept.Pods > 1 {
				p.claim.Kept[a.Payer] = budget.Kept{Pods: kept.Pods - 1, Relation: kept.Relation}
			} else {
				delete(p.claim.Kept, a.Payer)
			}
		}
		out = append(out, assignments...)
	}
	return out, nil
}

// alone plans pods of one variant.
func (p *variantPlan) alone(s *variant, parts []plan.Missing) ([]plan.Assignment, *plan.Refusal) {
	d := p.demand
	d.Beside = s.beside
	return plan.Gang(p.fleet, p.accounts, d, p.claim, parts, s.barred, p.now)
}

// units returns the missing pods by the domains that they share: those first that have the least choice.
func (p *variantPlan) units(variants []*variant) (out []*unit) {
	at := map[int]*unit{}
	for _, s := range variants {
		for _, part := range s.missing {
			group := 0
			if !p.demand.OneDomain {
				group = p.demand.Group(part.Part)
			}
			u := at[group]
			if u == nil {
				u = &unit{usable: s.usable}
				at[group] = u
			}
			if n := len(u.variants); n == 0 || u.variants[n-1].pod != s.pod {
				u.variants = append(u.variants, &variant{pod: s.pod, beside: s.beside, barred: s.barred, in: s.in})
			}
			last := u.variants[len(u.variants)-1]
			last.missing = append(last.missing, part)
			u.pods++
			u.bound = u.bound || part.Domain != ""
			u.usable = min(u.usable, s.usable)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(at)) {
		out = append(out, at[group])
	}
	choice := func(u *unit) int {
		if u.bound {
			return 0
		}
		return u.usable
	}
	slices.SortStableFunc(out, func(a, b *unit) int { return cmp.Compare(choice(a), choice(b)) })
	return out
}

// search plans units, each in the domain with the fewest free GPUs that leaves the others theirs.
func (p *variantPlan) search(units []*unit) ([]plan.Assignment, bool) {
	if len(units) == 0 {
		return nil, true
	}
	u, claim, mark := units[0], p.claim, p.fork.Mark()
	for _, domain := range p.roomsFor(u) {
		if out, refusal := p.place(u.variants, domain); refusal == nil {
			if others, ok := p.search(units[1:]); ok {
				return append(out, others...), true
			}
		}
		p.fork.RevertTo(mark)
		p.claim = claim
		p.vain++
		if p.vain >= vainDomains {
			break
		}
	}
	return nil, false
}

// roomsFor returns the domains that have as many free GPUs as a unit asks for, and nodes that each of its pods may use,
// those with the fewest GPUs first; "" for the one that it is bound to.
func (p *variantPlan) roomsFor(u *unit) (out []string) {
	if u.bound {
		return []string{""}
	}
	rooms := p.fleet.RoomOf(p.demand.Flavor)
	slices.SortStableFunc(rooms, func(a, b topology.DomainRoom) int { return cmp.Compare(a.Free, b.Free) })
	for i := range rooms {
		elsewhere := func(s *variant) bool { return !s.in[rooms[i].Key] }
		if rooms[i].Free >= u.pods*p.demand.GPUsPerPod && !slices.ContainsFunc(u.variants, elsewhere) {
			out = append(out, rooms[i].Key)
		}
	}
	return out
}

// explain says why variants have no place: there is none for as many pods, or for those of one variant; nil if there is
// for each of them by itself.
func (p *variantPlan) explain(variants []*variant, missing []plan.Missing, rejected func(string) bool) *plan.Refusal {
	d := p.demand
	d.Beside = nil
	if _, refusal := plan.Gang(p.fleet, p.accounts, d, p.claim, missing, rejected, p.now); refusal != nil {
		return refusal
	}
	wanted := len(missing) * d.GPUsPerPod
	for _, s := range variants {
		if _, refusal := p.alone(s, s.missing); refusal != nil {
			refusal.WantedGPUs = wanted
			refusal.Message = fmt.Sprintf("its pods differ in which nodes they may use; for %d of %d, such as %s: %s",
				len(s.missing), len(missing), s.pod.Name, refusal.Message)
			return refusal
		}
	}
	return nil
}
