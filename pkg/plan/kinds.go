package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Kind is pods of a gang that are alike in which nodes they may use, and in what they ask for of these beside GPUs.
type Kind struct {
	// Pod is the name of one of them.
	Pod    string
	Beside *topology.Amounts
	// Barred is a test for the nodes that they may not use, beside those that no pod of the gang may; it may be nil.
	Barred func(node string) bool
	// Nodes are the others, and Domains those that have some.
	Nodes   []string
	Domains map[string]bool
}

// Alike returns missing pods as if they did not differ.
func Alike(missing []Missing) []Missing {
	out := slices.Clone(missing)
	for i := range out {
		out[i].Kind = nil
	}
	return out
}

// ofKind is the missing pods of one kind.
type ofKind struct {
	*Kind
	missing []Missing
}

// byKind returns missing pods by their kinds: those first that may use the fewest nodes.
func byKind(missing []Missing) (out []ofKind) {
	for _, m := range missing {
		if m.Kind == nil {
			return nil
		}
		at := slices.IndexFunc(out, func(k ofKind) bool { return k.Kind == m.Kind })
		if at < 0 {
			at, out = len(out), append(out, ofKind{Kind: m.Kind})
		}
		out[at].missing = append(out[at].missing, m)
	}
	slices.SortStableFunc(out, func(a, b ofKind) int { return cmp.Compare(len(a.Nodes), len(b.Nodes)) })
	return out
}

// several is missing pods of several kinds, which are placed one kind beside the other.
type several struct {
	accounts *budget.Accounts
	demand   Demand
	claim    Claim
	missing  []Missing
	kinds    []ofKind
	excluded func(node string) bool
	now      time.Time
}

// beside places pods of several kinds on a fleet, in some domains if any are given.
type beside struct {
	*several
	within map[string]bool
	fork   *Fork
	left   Claim // what is left of the claim beside what is planned so far
	vain   int   // how many domains have been tried in vain
}

// vainDomains is how many domains are tried in vain for one gang at most: each takes a plan while the book waits, and
// who decides whom to cut asks many times.
const vainDomains = 16

func (s *several) on(fleet *topology.Fleet, within map[string]bool) *beside {
	return &beside{several: s, within: within, fork: NewFork(fleet, s.accounts), left: s.claim}
}

// place returns where each of the pods goes, or why one of them has no place.
func (p *beside) place() ([]Assignment, *Refusal) {
	defer p.fork.Revert()
	out, refusal := p.put(p.kinds, "")
	if refusal == nil {
		return out, nil
	}
	p.restart()
	if p.demand.Confined || p.demand.OneDomain { // the domains that a kind would choose may have no room for the others
		if out, ok := p.search(p.units()); ok {
			return out, nil
		}
	} else if out, ok := p.share(p.kinds, ""); ok { // nor may the nodes
		return out, nil
	}
	p.restart()
	return nil, refusal
}

// share places kinds by the parts that they have of the nodes, in a domain if one is given.
func (p *beside) share(kinds []ofKind, domain string) ([]Assignment, bool) {
	parts := p.sharesOf(kinds, domain)
	if parts == nil {
		return nil, false
	}
	out, refusal := p.put(parts, domain)
	return out, refusal == nil
}

// placeOr places them, or says why it cannot: not even pods that are alike have places where these lack some.
func (p *beside) placeOr(alike *topology.Shortfall) ([]Assignment, *Refusal) {
	if alike != nil {
		return nil, p.explain(nil)
	}
	out, refusal := p.place()
	if refusal != nil {
		return nil, p.explain(refusal)
	}
	return out, nil
}

func (p *beside) restart() {
	p.fork.Revert()
	p.left = p.claim
}

// put places kinds one beside the other, in a domain if one is given and where ranks are free to choose.
func (p *beside) put(kinds []ofKind, domain string) (out []Assignment, _ *Refusal) {
	p.left.Most, p.left.Kept = maps.Clone(p.left.Most), maps.Clone(p.left.Kept)
	for _, k := range kinds {
		missing := slices.Clone(k.missing)
		for i := range missing {
			if missing[i].Domain == "" && (p.demand.Confined || p.demand.OneDomain) {
				missing[i].Domain = domain
			}
		}
		p.gather(out, missing)
		assignments, refusal := p.attempt(k.Kind, missing).Place(p.fork.fleet)
		if refusal != nil {
			return nil, refusal
		}
		for _, a := range assignments {
			p.assume(a, k.Beside)
		}
		out = append(out, assignments...)
	}
	return out, nil
}

// gather has missing pods go where others of what they share a domain with have been placed, and spares be beside the
// ranks of their group.
func (p *beside) gather(placed []Assignment, missing []Missing) {
	for i := range missing {
		m := &missing[i]
		group := p.demand.Group(m.Part)
		at := slices.IndexFunc(placed, func(a Assignment) bool {
			return p.demand.OneDomain || p.demand.Confined && a.Group == group
		})
		for _, a := range placed {
			if m.Spare && !a.Spare && a.Group == group && !slices.Contains(m.Beside, a.Node) {
				m.Beside = append(slices.Clip(m.Beside), a.Node)
			}
		}
		if at >= 0 && m.Domain == "" {
			m.Domain = placed[at].Domain
		}
	}
}

// attempt asks who pays for missing pods of one kind, beside what is planned so far.
func (p *beside) attempt(k *Kind, missing []Missing) *Attempt {
	d := p.demand
	d.Beside = k.Beside
	return Prepare(p.accounts, d, p.left, Alike(missing), either(p.excluded, k.Barred), p.now).Within(p.within)
}

// assume has a pod hold what it is to hold.
func (p *beside) assume(a Assignment, beside *topology.Amounts) {
	role := rqv1.RoleActive
	if a.Spare {
		role = rqv1.RoleSpare
	}
	charge := budget.Charge{Payer: a.Payer, Owner: p.demand.Owner, Run: p.claim.Run, Relation: a.Relation, Role: role,
		GPUs: p.demand.GPUsPerPod, Rate: p.accounts.RateOf(role), Start: p.now, Flavor: p.demand.Flavor, Node: a.Node}
	if lasts := p.claim.lasts(p.now); lasts > 0 {
		charge.Until = p.now.Add(lasts)
	}
	p.fork.Take(a.Node, p.demand.GPUsPerPod, beside)
	p.fork.Open("planned/"+a.Part.PodName(p.claim.Run), charge)
	if most, bounded := p.left.Most[a.Node]; bounded {
		p.left.Most[a.Node] = max(0, most-1)
	}
	if kept := p.left.Kept[a.Payer]; kept.Pods > 1 {
		p.left.Kept[a.Payer] = budget.Kept{Pods: kept.Pods - 1, Relation: kept.Relation}
	} else {
		delete(p.left.Kept, a.Payer)
	}
}

// unit is missing pods that share a domain.
type unit struct {
	kinds  []ofKind
	pods   int
	bound  bool // to the domain where the others of their group are
	domain string
	usable int // nodes, by those of its pods that may use the fewest
}

// choice is how many nodes a unit may choose from.
func (u *unit) choice() int {
	if u.bound {
		return 0
	}
	return u.usable
}

// units returns the missing pods by the domains that they share: those first that have the least choice.
func (s *several) units() (out []*unit) {
	at := map[int]*unit{}
	for _, k := range s.kinds {
		for _, m := range k.missing {
			group := 0
			if !s.demand.OneDomain {
				group = s.demand.Group(m.Part)
			}
			u := at[group]
			if u == nil {
				u = &unit{usable: len(k.Nodes)}
				at[group] = u
			}
			if n := len(u.kinds); n == 0 || u.kinds[n-1].Kind != k.Kind {
				u.kinds = append(u.kinds, ofKind{Kind: k.Kind})
			}
			last := &u.kinds[len(u.kinds)-1]
			last.missing = append(last.missing, m)
			u.pods++
			u.bound, u.domain = u.bound || m.Domain != "", cmp.Or(u.domain, m.Domain)
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
func (p *beside) search(units []*unit) ([]Assignment, bool) {
	if len(units) == 0 {
		return nil, true
	}
	u, left, mark := units[0], p.left, p.fork.Mark()
	for _, domain := range p.roomsFor(u) {
		out, refusal := p.put(u.kinds, domain)
		there := refusal == nil
		if !there {
			p.fork.RevertTo(mark)
			p.left = left
			out, there = p.share(u.kinds, cmp.Or(domain, u.domain))
		}
		if there {
			if others, ok := p.search(units[1:]); ok {
				return append(out, others...), true
			}
		}
		p.fork.RevertTo(mark)
		p.left = left
		p.vain++
		if p.vain >= vainDomains {
			break
		}
	}
	return nil, false
}

// roomsFor returns the domains that have as many free GPUs as a unit asks for, and nodes that each of its pods may use,
// those with the fewest GPUs first; "" for the one that it is bound to.
func (p *beside) roomsFor(u *unit) (out []string) {
	if u.bound {
		return []string{""}
	}
	rooms := p.fork.fleet.RoomOf(p.demand.Flavor)
	slices.SortStableFunc(rooms, func(a, b topology.DomainRoom) int { return cmp.Compare(a.Free, b.Free) })
	for i := range rooms {
		key := rooms[i].Key
		elsewhere := func(k ofKind) bool { return !k.Domains[key] }
		if (p.within == nil || p.within[key]) && rooms[i].Free >= u.pods*p.demand.GPUsPerPod &&
			!slices.ContainsFunc(u.kinds, elsewhere) {
			out = append(out, key)
		}
	}
	return out
}

// explain says why pods of several kinds have no place: there is none for as many pods, or for those of one kind, or
// none beside one another, of which the first kind that found none says why.
func (p *beside) explain(first *Refusal) *Refusal {
	all := Prepare(p.accounts, p.demand, p.claim, Alike(p.missing), p.excluded, p.now).Within(p.within)
	all.request.Beside = nil
	if _, refusal := all.Place(p.fork.fleet); refusal != nil {
		return refusal
	}
	wanted := len(p.missing) * p.demand.GPUsPerPod
	for _, k := range p.kinds {
		if _, refusal := p.attempt(k.Kind, k.missing).Place(p.fork.fleet); refusal != nil {
			refusal.WantedGPUs = wanted
			refusal.Message = fmt.Sprintf("its pods differ in which nodes they may use; for %d of %d, such as %s: %s",
				len(k.missing), len(p.missing), k.Pod, refusal.Message)
			return refusal
		}
	}
	if first == nil {
		first = &Refusal{ShortGPUs: p.demand.GPUsPerPod}
	} else if first.AboutMoney() {
		return first
	}
	d := &p.demand
	return &Refusal{Reason: InsufficientGPUs, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: wanted,
		ShortGPUs: first.ShortGPUs, Message: fmt.Sprintf("%d %s GPUs are needed, and as many are free, but its pods "+
			"differ in which nodes they may use: no place was found for all of them beside one another", wanted, d.Flavor)}
}

// short returns what keeps the kinds that have no place beside the others from theirs, as one; nil when all have one.
func (p *beside) short() *topology.Shortfall {
	if _, refusal := p.place(); refusal == nil {
		return nil
	}
	defer p.fork.Revert()
	var out *topology.Shortfall
	for _, k := range p.kinds {
		if _, refusal := p.put([]ofKind{k}, ""); refusal == nil {
			continue
		}
		short := p.attempt(k.Kind, k.missing).Short(p.fork.fleet)
		switch {
		case short == nil: // it is money that is short
		case short.Kind != topology.NoRoom && short.Kind != topology.Unpayable:
			return short
		case out == nil:
			out = short
		default:
			out.ShortGPUs += short.ShortGPUs
		}
	}
	if out == nil { // each has a place, but not beside the others
		out = &topology.Shortfall{Kind: topology.NoRoom, Flavor: p.demand.Flavor, ShortGPUs: p.demand.GPUsPerPod}
	}
	out.WantedGPUs = len(p.missing) * p.demand.GPUsPerPod
	out.PlaceableGPUs = max(0, out.WantedGPUs-out.ShortGPUs)
	return out
}

// either returns a test for what one of two tests holds for, of which each may be nil.
func either(a, b func(node string) bool) func(node string) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(node string) bool { return a(node) || b(node) }
}
