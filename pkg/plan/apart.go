package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// unit is missing pods that share a domain.
type unit struct {
	kinds  []ofKind
	pods   int
	domain string // that they are bound to, since others of their group are there; "" where they may choose
	usable int    // nodes, by those of its pods that may use the fewest
	vain   int    // how many domains have been tried in vain
}

// choice is how many nodes a unit may choose from.
func (u *unit) choice() int {
	if u.domain != "" {
		return 0
	}
	return u.usable
}

// units returns the missing pods by the domains that they share: those first that have the least choice.
func (p *beside) units() (out []*unit) {
	at := map[int]*unit{}
	for _, k := range p.kinds {
		for _, m := range k.missing {
			u := at[p.unitOf(m.Part)]
			if u == nil {
				u = &unit{usable: len(k.Nodes)}
				at[p.unitOf(m.Part)] = u
			}
			if n := len(u.kinds); n == 0 || u.kinds[n-1].Kind != k.Kind {
				u.kinds = append(u.kinds, ofKind{Kind: k.Kind})
			}
			last := &u.kinds[len(u.kinds)-1]
			last.missing = append(last.missing, m)
			u.pods++
			u.domain = cmp.Or(u.domain, m.Domain)
			u.usable = min(u.usable, len(k.Nodes))
		}
	}
	for _, group := range slices.Sorted(maps.Keys(at)) {
		out = append(out, at[group])
	}
	slices.SortStableFunc(out, func(a, b *unit) int { return cmp.Compare(a.choice(), b.choice()) })
	return out
}

// search places units, each in the domain with the fewest free GPUs that leaves the others theirs.
func (p *beside) search(units []*unit) bool {
	if len(units) == 0 {
		return true
	}
	u, before := units[0], p.mark()
	for _, domain := range p.roomsFor(u, u.pods) {
		if p.surelyFull(u.kinds, domain) {
			continue
		}
		there := p.put(u.kinds, domain) && !p.besideOwn()
		if !there {
			p.back(before)
			there = p.share(u.kinds, domain) && !p.besideOwn()
		}
		if there && p.search(units[1:]) {
			return true
		}
		p.back(before)
		u.vain++
		p.vain++
		if u.vain >= vainDomains || p.vain >= p.mostVain {
			break
		}
	}
	return false
}

// surelyFull reports whether some kinds have no room in a domain as is seen at once, for as many nodes as are looked at
// for that: such a domain is not tried in vain.
func (p *beside) surelyFull(kinds []ofKind, domain string) bool {
	if p.sifted > mostLooks {
		return false
	}
	for _, k := range kinds {
		p.sifted += len(k.Domains[domain])
	}
	return !p.mayHaveRoom(kinds, domain)
}

// roomsFor returns the domains that have as many free GPUs as some pods ask for, and nodes that each pod of a unit may
// use, those with the fewest GPUs first; the one that it is bound to where it is.
func (p *beside) roomsFor(u *unit, pods int) (out []string) {
	if u.domain != "" {
		return []string{u.domain}
	}
	rooms := p.fork.fleet.RoomOf(p.demand.Flavor)
	slices.SortStableFunc(rooms, func(a, b topology.DomainRoom) int { return cmp.Compare(a.Free, b.Free) })
	for i := range rooms {
		key, within := rooms[i].Key, p.request.Within
		elsewhere := func(k ofKind) bool { return len(k.Domains[key]) == 0 }
		if (within == nil || within[key]) && rooms[i].Free >= pods*p.demand.GPUsPerPod &&
			!slices.ContainsFunc(u.kinds, elsewhere) {
			out = append(out, key)
		}
	}
	return out
}

// each places pods one by one, wherever they may be, and goes back where that leaves others without places: it finds
// all there is where they are few. Spares come after the ranks of their group, and on its nodes last.
func (p *beside) each() bool {
	if p.several.looks > mostLooksInAll || !p.mayHaveRoom(p.kinds, "") {
		return false
	}
	looks := 0
	p.roomy = map[*Kind][]string{}
	for _, k := range p.kinds {
		room := p.fork.fleet.RoomFor(p.ask(k.Kind, k.missing))
		p.roomy[k.Kind] = slices.DeleteFunc(slices.Clone(k.Nodes), func(node string) bool { return room(node) == 0 })
		looks += len(k.missing) * len(p.roomy[k.Kind])
	}
	if p.looks+looks > mostLooks {
		return false // not even a search that never goes back would come to its end
	}
	var pods []Missing
	for _, u := range p.units() {
		for _, spare := range []bool{false, true} {
			for _, k := range u.kinds {
				for _, m := range k.missing {
					if m.Spare == spare {
						pods = append(pods, m)
					}
				}
			}
		}
	}
	return p.from(pods)
}

func (p *beside) from(pods []Missing) bool {
	if len(pods) == 0 {
		_, paid := p.assignments()
		return paid
	}
	before := p.mark()
	m := p.gather(pods[:1], "")[0]
	for _, node := range p.nodesFor(m) {
		slot := topology.Slot{Group: p.demand.Group(m.Part), Spare: m.Spare, Node: node,
			Domain: p.fork.fleet.DomainOf(node)}
		if !p.unpaid {
			slot.Class = p.fork.fleet.ClassOf(node, p)
		}
		if slot.Class >= 0 {
			p.assume(m, slot)
			if (p.unpaid || p.Covers(nil)) && p.from(pods[1:]) {
				return true
			}
			p.back(before)
		}
	}
	return false
}

// nodesFor returns the nodes where a pod has room beside what is planned so far: of pods that are alike, a later one
// goes to no node before an earlier one's.
func (p *beside) nodesFor(m Missing) (out []string) {
	room, after := p.fork.fleet.RoomFor(p.ask(m.Kind, []Missing{m})), ""
	group := map[string]bool{}
	for _, at := range p.placed {
		group[at.Node] = group[at.Node] || m.Spare && p.demand.Group(at.Part) == p.demand.Group(m.Part)
	}
	if n := len(p.placed); n > 0 && !m.Spare && p.placed[n-1].Kind == m.Kind &&
		(!p.demand.Confined || p.demand.Group(p.placed[n-1].Part) == p.demand.Group(m.Part)) {
		after = p.placed[n-1].Node
	}
	for _, node := range p.roomy[m.Kind] {
		p.looks++
		p.several.looks++
		if p.looks > mostLooks || p.several.looks > mostLooksInAll {
			return nil
		}
		apart := !p.strict || !group[node]
		if node >= after && apart && (m.Domain == "" || p.fork.fleet.DomainOf(node) == m.Domain) && room(node) > 0 {
			out = append(out, node)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int {
		switch {
		case group[a] == group[b]:
			return 0
		case group[a]:
			return 1
		}
		return -1
	})
	return out
}
