package plan

import (
	"fmt"
	"slices"
	"sort"

	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// refuse says why pods of several kinds have no place, where as many that are alike would have some: those of one kind
// have none, or none beside one another.
func (a *Attempt) refuse(fleet *topology.Fleet) *Refusal {
	s := a.several
	for _, k := range s.kinds {
		d := a.demand
		d.Beside = k.Beside
		alone := Prepare(s.accounts, d, s.claim, Alike(k.missing), Either(a.request.Excluded, k.Barred), s.now)
		if _, refusal := alone.Within(a.request.Within).Place(fleet); refusal != nil {
			refusal.WantedGPUs = a.wanted
			refusal.Message = fmt.Sprintf("its pods differ in %s; for %d of %d, such as %s: %s", s.differ(), len(k.missing),
				len(a.missing), k.Pod, refusal.Message)
			return refusal
		}
	}
	short := a.on(fleet).shortage()
	if short.Kind == topology.Unpayable {
		return a.roomElsewhere(fleet, short.PlaceableGPUs)
	}
	d := &a.demand
	return &Refusal{Reason: InsufficientGPUs, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: a.wanted,
		ShortGPUs: short.ShortGPUs, Message: fmt.Sprintf("%d %s GPUs are needed, and as many are free, but its pods "+
			"differ in %s: no place was found for all of them beside one another", a.wanted, d.Flavor, s.differ())}
}

// differ says in what the kinds differ.
func (s *several) differ() string {
	first := s.kinds[0]
	nodes := slices.ContainsFunc(s.kinds, func(k ofKind) bool {
		return k.Says != first.Says && !slices.Equal(k.Nodes, first.Nodes)
	})
	amounts := slices.ContainsFunc(s.kinds, func(k ofKind) bool { return k.Beside != first.Beside })
	switch {
	case nodes && amounts:
		return differInNodes + " and in " + differInAmounts
	case amounts:
		return differInAmounts
	case nodes:
		return differInNodes
	}
	return "where other scheduling rules let them be"
}

// In what pods of a group differ.
const (
	differInNodes   = "which nodes they may use"
	differInAmounts = "what they ask for beside GPUs"
)

// short returns what keeps pods of several kinds from having places beside one another, as a fleet says it of pods that
// are alike: without who pays, room is told from money. It is nil where they have. What keeps as many that are alike
// is given.
func (p *beside) short(alike *topology.Shortfall) *topology.Shortfall {
	if never(alike) {
		return alike
	}
	for _, k := range p.kinds {
		if _, short := p.fork.fleet.Pack(p.ask(k.Kind, k.missing)); never(short) {
			return short
		}
	}
	if alike == nil {
		if _, fits := p.place(); fits {
			return nil
		}
	}
	return p.shortage()
}

// shortage returns what is short of pods that have no places beside one another.
func (p *beside) shortage() *topology.Shortfall {
	out := &topology.Shortfall{Kind: topology.NoRoom, Flavor: p.demand.Flavor, WantedGPUs: p.wanted}
	free := p.on(p.fork.fleet)
	free.unpaid = true
	if _, fits := free.place(); fits {
		out.Kind, free.unpaid = topology.Unpayable, false
	}
	out.ShortGPUs = max(1, free.without()) * p.demand.GPUsPerPod
	out.PlaceableGPUs = out.WantedGPUs - out.ShortGPUs
	return out
}

// never reports whether not even an empty fleet would do.
func never(short *topology.Shortfall) bool {
	return short != nil && short.Kind != topology.NoRoom && short.Kind != topology.Unpayable
}

// without returns how many pods have no place beside the others, where as many as possible have.
func (p *beside) without() (pods int) {
	defer p.back(mark{})
	units := []*unit{{kinds: p.kinds}}
	if p.demand.Confined || p.demand.OneDomain {
		units = p.units()
	}
	for _, u := range units {
		pods += p.fill(u.kinds, p.best(u))
	}
	return pods
}

// best returns the domain in which the most pods of a unit have places, of those with the most free GPUs; "" where they
// need share none.
func (p *beside) best(u *unit) (out string) {
	if !p.demand.Confined && !p.demand.OneDomain {
		return ""
	}
	least := u.pods + 1
	rooms := p.roomsFor(u, 1)
	for _, domain := range rooms[max(0, len(rooms)-vainDomains):] {
		if _, without := p.partsOf(u.kinds, domain); without < least {
			least, out = without, domain
		}
	}
	return out
}

// fill places as many pods of some kinds as have places, in a domain if one is given, and returns how many have none.
func (p *beside) fill(kinds []ofKind, domain string) int {
	parts, without := p.partsOf(kinds, domain)
	for _, k := range parts {
		before := p.mark()
		n := sort.Search(len(k.missing), func(i int) bool {
			defer p.back(before)
			return !p.putOne(k.Kind, k.missing[:i+1], domain)
		})
		p.putOne(k.Kind, k.missing[:n], domain)
		without += len(k.missing) - n
	}
	return without
}
