package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// beside places pods of several kinds on a fleet, one kind beside the other, and has one cover pay for all of them.
type beside struct {
	*Attempt
	kinds   []ofKind
	common  string // the domain that all are bound to, if they are
	unpaid  bool   // it does not matter who pays
	strict  bool   // no spare may be on the node of a rank of its group
	fork    *Fork
	placed  []placed
	demands []int // how many of these are on nodes of each class of payers
	// vain is how many domains have been tried in vain, of mostVain in all, and sifted how many nodes have been looked at
	// to see which are not worth it.
	vain, mostVain, sifted int
	// roomy are the nodes by name where single pods of a kind are tried, and looks how many have been looked at.
	roomy map[*Kind][]string
	looks int
}

// placed is a pod that is planned to have a place.
type placed struct {
	Missing
	topology.Slot
}

// vainDomains is how many domains are tried in vain for one unit at most, and for all together beside one for each, and
// mostLooks how many nodes are looked at for single pods, and mostLooksInAll how many for all that is asked of one
// Attempt: it takes time while the book waits, and who decides whom to cut asks many times.
const (
	vainDomains    = 16
	mostLooks      = 10000
	mostLooksInAll = 20 * mostLooks
)

func (a *Attempt) on(fleet *topology.Fleet) *beside {
	p := &beside{Attempt: a, kinds: a.several.kinds, fork: NewFork(fleet, nil)}
	for _, m := range a.missing {
		if a.demand.OneDomain {
			p.common = cmp.Or(p.common, m.Domain)
		}
	}
	return p
}

// unitOf numbers the pods that share a domain with one.
func (p *beside) unitOf(part rank.Part) int {
	if p.demand.OneDomain {
		return 0
	}
	return p.demand.Group(part)
}

// placeApart is place with spares on other nodes than the ranks of their group, also those of other kinds, wherever
// that is found to be possible (R12).
func (p *beside) placeApart() ([]Assignment, bool) {
	out, fits := p.place()
	if !fits || !besideOwn(out) {
		return out, fits
	}
	p.strict = true
	if apart, fits := p.place(); fits {
		return apart, true
	}
	return out, true
}

// besideOwn reports whether a spare is on the node of a rank of its group.
func besideOwn(places []Assignment) bool {
	type at struct {
		group int
		node  string
	}
	ranks := map[at]bool{}
	for i := range places {
		if a := &places[i]; !a.Spare {
			ranks[at{a.Group, a.Node}] = true
		}
	}
	return slices.ContainsFunc(places, func(a Assignment) bool { return a.Spare && ranks[at{a.Group, a.Node}] })
}

// place returns where each of the pods goes, and false where they have no place. The domains that a kind would choose
// may have no room for the others, nor may its nodes; nor may who pays for one pay for another, or what it asks for
// beside GPUs be what another needs, so that in the end places are tried one by one.
func (p *beside) place() ([]Assignment, bool) {
	defer p.back(mark{})
	for _, way := range []func() bool{p.first, p.apart, p.each} {
		if way() {
			if out, paid := p.assignments(); paid && !(p.strict && besideOwn(out)) {
				return out, true
			}
		}
		p.back(mark{})
	}
	return nil, false
}

// first places each kind where it would go by itself.
func (p *beside) first() bool { return p.put(p.kinds, "") }

// apart has kinds leave one another their domains and their nodes.
func (p *beside) apart() bool {
	if p.demand.Confined || p.demand.OneDomain {
		units := p.units()
		p.vain, p.mostVain = 0, vainDomains+len(units)
		return p.search(units)
	}
	return p.share(p.kinds, "")
}

// share places kinds by the parts that they have of the nodes, in a domain if one is given.
func (p *beside) share(kinds []ofKind, domain string) bool {
	parts, without := p.partsOf(kinds, domain)
	return without == 0 && p.put(parts, domain)
}

// mark is a state of what is planned, to go back to.
type mark struct{ changes, placed int }

func (p *beside) mark() mark { return mark{p.fork.Mark(), len(p.placed)} }

// back has what came after a mark not be planned.
func (p *beside) back(to mark) {
	p.fork.RevertTo(to.changes)
	for _, at := range p.placed[to.placed:] {
		p.demands[at.Class]--
	}
	p.placed = p.placed[:to.placed]
}

// put places kinds one beside the other, in a domain if one is given and where ranks are free to choose.
func (p *beside) put(kinds []ofKind, domain string) bool {
	if p.strict {
		kinds = sparesLast(kinds)
	}
	return !slices.ContainsFunc(kinds, func(k ofKind) bool { return !p.putOne(k.Kind, k.missing, domain) })
}

// besideOwn reports whether a spare is on the node of a rank of its group although none may be.
func (p *beside) besideOwn() bool {
	if !p.strict {
		return false
	}
	places := make([]Assignment, len(p.placed))
	for i, at := range p.placed {
		places[i] = Assignment{Part: at.Part, Group: p.demand.Group(at.Part), Node: at.Node}
	}
	return besideOwn(places)
}

// sparesLast returns kinds without their spares, and then the spares.
func sparesLast(kinds []ofKind) (out []ofKind) {
	for _, spares := range []bool{false, true} {
		for _, k := range kinds {
			of := slices.DeleteFunc(slices.Clone(k.missing), func(m Missing) bool { return m.Spare != spares })
			if len(of) > 0 {
				out = append(out, ofKind{k.Kind, of})
			}
		}
	}
	return out
}

// putOne places pods of one kind, beside what is planned so far.
func (p *beside) putOne(k *Kind, missing []Missing, domain string) bool {
	missing = p.gather(missing, domain)
	placement, fits := p.fork.fleet.Place(p.ask(k, missing))
	for i, slot := range placement.Slots {
		p.assume(missing[i], slot)
	}
	return fits
}

// gather has missing pods go where others of what they share a domain with have been placed, or to a domain if one is
// given, and has spares keep off the nodes of the ranks of their group.
func (p *beside) gather(missing []Missing, domain string) []Missing {
	out, of, ranks := slices.Clone(missing), map[int]string{}, map[int][]string{}
	for _, at := range p.placed {
		of[p.unitOf(at.Part)] = at.Slot.Domain
		if group := p.demand.Group(at.Part); !at.Spare {
			ranks[group] = append(ranks[group], at.Node)
		}
	}
	for i := range out {
		m := &out[i]
		if m.Spare {
			m.Beside = slices.Concat(m.Beside, ranks[p.demand.Group(m.Part)])
		}
		if p.demand.Confined || p.demand.OneDomain {
			m.Domain = cmp.Or(m.Domain, of[p.unitOf(m.Part)], domain, p.common)
		}
	}
	return out
}

// ask is what pods of one kind ask of the fleet, beside what is planned so far.
func (p *beside) ask(k *Kind, missing []Missing) topology.Request {
	r := p.request
	r.Beside, r.Groups, r.Excluded, r.Purse = k.Beside, groups(p.demand, missing), Either(r.Excluded, k.Barred), p
	if p.unpaid {
		r.Purse = nil
	}
	if len(r.Most) > 0 {
		r.Most = maps.Clone(r.Most)
		for _, at := range p.placed {
			if most, bounded := r.Most[at.Node]; bounded {
				r.Most[at.Node] = max(0, most-1)
			}
		}
	}
	return r
}

// Class is the payer class of nodes with some labels.
func (p *beside) Class(labels map[string]string) int { return p.cover.Class(labels) }

// Covers reports whether so many pods more can be paid for on nodes of each class.
func (p *beside) Covers(demand []int) bool {
	all := slices.Clone(p.demands)
	for class, pods := range demand {
		all = grown(all, class)
		all[class] += pods
	}
	return p.cover.Covers(all)
}

func grown(demand []int, class int) []int {
	for len(demand) <= class {
		demand = append(demand, 0)
	}
	return demand
}

// assume has a pod hold what it is to hold.
func (p *beside) assume(m Missing, slot topology.Slot) {
	p.fork.Take(slot.Node, p.demand.GPUsPerPod, m.Kind.Beside)
	p.demands = grown(p.demands, slot.Class)
	p.demands[slot.Class]++
	p.placed = append(p.placed, placed{m, slot})
}

// assignments returns what is planned with who pays for it, and false where they cannot: all pods at once, whichever
// kind came first. Payers follow the groups of each kind.
func (p *beside) assignments() ([]Assignment, bool) {
	if p.unpaid {
		return nil, true
	}
	of := map[rank.Part]topology.Slot{}
	for _, at := range p.placed {
		of[at.Part] = at.Slot
	}
	slots := make([]topology.Slot, len(p.missing))
	for i, m := range p.missing {
		slots[i] = of[m.Part]
	}
	payers := p.assign(topology.Placement{Slots: slots})
	if payers == nil {
		return nil, false
	}
	p.alignKinds(slots, payers)
	return p.assigned(slots, payers), true
}

// alignKinds has payers follow groups, those of each kind: of groups whose pods share a domain those that are of one.
func (p *beside) alignKinds(slots []topology.Slot, payers []int) {
	kinds := map[int]map[*Kind]bool{}
	for _, m := range p.missing {
		group := p.demand.Group(m.Part)
		if kinds[group] == nil {
			kinds[group] = map[*Kind]bool{}
		}
		kinds[group][m.Kind] = true
	}
	for _, k := range p.kinds {
		var at, paid []int
		var of []topology.Slot
		for i, m := range p.missing {
			if m.Kind == k.Kind {
				at, of, paid = append(at, i), append(of, slots[i]), append(paid, payers[i])
			}
		}
		alike := groups(p.demand, k.missing)
		for i := range alike {
			if (p.demand.Confined || p.demand.SparesPerGroup > 0) && len(kinds[alike[i].Index]) > 1 {
				alike[i].Domain = "bound" // to where its others are, or are not
			}
		}
		align(of, alike, paid)
		for i, to := range at {
			slots[to], payers[to] = of[i], paid[i]
		}
	}
}
