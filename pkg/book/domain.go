package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// domainOf returns the fabric domain of a node, the one that it was in when it has been left out since: what runs there
// is where it was. It is empty when that is not known.
func (t *nodeTable) domainOf(node string) string {
	if domain := t.fleet.DomainOf(node); domain != "" {
		return domain
	}
	return t.strayed[node]
}

// stray remembers the domain of a node that has just been left out, and forgets that of one that is not.
func (t *nodeTable) stray(node, domain string) {
	switch is := t.fleet.DomainOf(node); {
	case is != "":
		delete(t.strayed, node)
	case domain != "":
		t.strayed[node] = domain
	}
}

// domainAt returns the fabric domain of a node that a part of a gang holds or has held, or the one that its Lease tells
// if the node was left out before anybody of this process has seen where it is. It is empty when that is not known.
func (t *nodeTable) domainAt(g *gang, part rank.Part, node string) string {
	domain := t.domainOf(node)
	if last := g.latest[part]; domain == "" && t.byName[node] != nil && last != nil && last.node == node {
		return last.domain
	}
	return domain
}

// domainsOf returns the domain of every scope of a gang that has one already: where most of its ranks are, if somebody
// has moved a node's label; of its spares when it has no ranks; or unknown. It refuses while a pod that decides it is
// on a node that is gone; such a spare of a Run that has started decides nothing.
func (t *nodeTable) domainsOf(g *gang) (map[int]string, *plan.Refusal) {
	domains := map[int]string{}
	if !g.demand.Confined && !g.demand.OneDomain {
		return domains, nil
	}
	votes := map[int][]string{}
	for m := range g.all() {
		scope := g.scope(m)
		if !m.placed() || m.part.Spare && len(votes[scope]) > 0 {
			continue
		}
		switch domain := t.domainAt(g, m.part, m.node); {
		case domain != "":
			votes[scope] = append(votes[scope], domain)
		case t.byName[m.node] != nil:
			domains[scope] = unknown
		case !m.part.Spare || !g.started():
			return nil, g.notYet(fmt.Sprintf("pod %s holds GPUs on node %s, which is gone; it is replaced first", m.pod.Name,
				m.node))
		}
	}
	for i := range g.vacant { // ranks that come late have their places already
		v := &g.vacant[i]
		if !g.comesTo(v) {
			continue
		}
		part := rank.Part{Index: v.index}
		scope := g.scopeOf(part)
		if domain := t.domainAt(g, part, v.node); domain != "" {
			votes[scope] = append(votes[scope], domain)
		} else if t.byName[v.node] != nil {
			domains[scope] = unknown
		}
	}
	for scope, of := range votes {
		domains[scope] = mostFrequent(of)
	}
	return domains, nil
}

// astray refuses ranks whose group is in a domain that nobody knows; nil when there are none.
func (t *nodeTable) astray(g *gang, missing []plan.Missing) *plan.Refusal {
	at := slices.IndexFunc(missing, func(m plan.Missing) bool { return m.Domain == unknown })
	if at < 0 {
		return nil
	}
	node, reason := "", ""
	for m := range g.all() {
		if m.placed() && t.domainAt(g, m.part, m.node) == "" &&
			(g.demand.OneDomain || m.group() == g.demand.Group(missing[at].Part)) {
			node = m.node
			break
		}
	}
	for i := range g.vacant { // or a rank is to go where a spare was
		if v := &g.vacant[i]; node == "" && v.seat() && t.domainOf(v.node) == "" {
			node = v.node
		}
	}
	for _, out := range t.fleet.LeftOut() {
		if out.Node == node {
			reason = out.Reason
		}
	}
	gpus := g.demand.GPUsPerPod * len(missing)
	return &plan.Refusal{
		Reason: plan.InsufficientGPUs, Owner: g.demand.Owner, Flavor: g.demand.Flavor, WantedGPUs: gpus, ShortGPUs: gpus,
		Message: fmt.Sprintf("group %d must stay in its domain, which is unknown because node %s is left out (%s); "+
			"correct the node's labels",
			g.demand.Group(missing[at].Part), node, reason),
	}
}

// awaitOwn has who is placed without all of its group, of which nothing has a place, be where a rank of it has been
// that goes on there, or may.
func (s *seating) awaitOwn(g *gang, domains map[int]string, scopes func(int) bool) {
	if !g.staysTogether() {
		return
	}
	for i := range g.vacant {
		v, node := &g.vacant[i], g.vacant[i].node
		if s.outlived(v) {
			node = s.held[v.pod].node
		} else if !v.own {
			continue
		}
		part := rank.Part{Index: v.index}
		if scope := g.scopeOf(part); domains[scope] == "" && s.nodes.byName[node] != nil && scopes(scope) {
			domains[scope] = cmp.Or(s.nodes.domainAt(g, part, node), unknown)
		}
	}
}

// leavesOut reports whether a rank of a scope is left out of a plan for the others.
func (g *gang) leavesOut(scope int) bool {
	for index := range g.nodeWait.left {
		if g.scopeOf(rank.Part{Index: index}) == scope {
			return true
		}
	}
	return false
}

// anyScope is for all of them.
func anyScope(int) bool { return true }

// mayBeAstray reports whether what a rank held itself, on a node whose domain nobody knows, may be in another one than
// its group is in by now: none of those who have a place had it while the rank did.
func (g *gang) mayBeAstray(v *vacancy) bool {
	seat := &member{gang: g, part: rank.Part{Index: v.index}}
	last := g.latest[seat.part]
	if !v.own || last == nil || last.ended.IsZero() {
		return false
	}
	for m := range g.all() {
		if m.placed() && g.scope(m) == g.scope(seat) && m.had != nil && m.had.held.Before(last.ended) {
			return false
		}
	}
	return true
}

// domainsAround returns the fabric domains of a Reservation's slice.
func (t *nodeTable) domainsAround(r *rqv1.Reservation) map[string]bool {
	out := map[string]bool{}
	if r.Spec.IntendedSlice == nil {
		return out
	}
	for _, node := range r.Spec.IntendedSlice.Nodes {
		if domain := t.fleet.DomainOf(node); domain != "" {
			out[domain] = true
		}
	}
	return out
}

// scopeOf returns the fabric domains in which a gang's Reservation has others be cut: those of its slice, and those
// that its forecast names, in which the gang may come to lie when it is known who is drawn.
func (t *nodeTable) scopeOf(g *gang) map[string]bool {
	out := t.domainsAround(g.reservation)
	if f := g.reservation.Status.Forecast; f != nil {
		maps.Copy(out, forecast.Domains(t.fleet, g.demand.Flavor, f.Scope))
	}
	return out
}

// nodesAround returns the nodes in the domains of a Reservation's slice, of which those are that turned its Run down.
func (t *nodeTable) nodesAround(r *rqv1.Reservation) (names []string) {
	domains := t.domainsAround(r)
	for name := range t.byName {
		if domains[t.fleet.DomainOf(name)] {
			names = append(names, name)
		}
	}
	return names
}

// mostFrequent returns the most frequent of some names, the first by name of several.
func mostFrequent(of []string) string {
	slices.Sort(of)
	best, count := "", 0
	for from := 0; from < len(of); {
		end := from
		for end < len(of) && of[end] == of[from] {
			end++
		}
		if end-from > count {
			best, count = of[from], end-from
		}
		from = end
	}
	return best
}
