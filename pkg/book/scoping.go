package book

import (
	"k8s.io/apimachinery/pkg/types"
)

// scope has a check know which of its pods must lie in one domain, and where others of theirs are.
func (b *Book) scope(g *gang, c *Check) {
	if !g.staysTogether() {
		return
	}
	placed := map[types.UID]bool{}
	for _, p := range c.Places {
		placed[p.Pod.UID] = true
		c.scopes = append(c.scopes, g.scope(b.roster.members[p.Pod.UID]))
	}
	c.domains = map[int]string{}
	for m := range g.all() {
		if m.placed() && !placed[m.pod.UID] && (!m.part.Spare || c.domains[g.scope(m)] == "") {
			c.domains[g.scope(m)] = b.nodes.domainAt(g, m.part, m.node)
		}
	}
	b.seats.awaitOwn(g, c.domains, anyScope) // ranks that come late, or wait for their nodes, have their places already
}

// leftBy returns the nodes that ranks of a check are to leave if they can (R27): they were planned elsewhere for it.
func (b *Book) leftBy(g *gang, c *Check) map[string]bool {
	out := map[string]bool{}
	if !g.started() {
		return out
	}
	for i, part := range c.ranks {
		if part.Spare {
			continue
		}
		m := *b.roster.members[c.Places[i].Pod.UID]
		m.stage = unplaced
		for _, node := range append(g.evicting(part.Index, &m), g.flees(&m)) {
			out[node] = true
		}
	}
	return out
}

// sits reports whether a place of a check is that of a spare, which its rank has whatever else is laid out.
func (c *Check) sits(place int) bool { return place < len(c.seated) && c.seated[place] }

// seat counts a pod that has its place on a node.
func (a *arrangement) seat(name string) {
	a.ranks[name]++
	for _, node := range a.nodes {
		if node.name == name {
			node.pods++
			return
		}
	}
}

// scoping is in which domains pods lie that must be in one together: their scope goes where the first of them does, if
// that has room for all.
type scoping struct {
	scopes []int // of each pod; nil where none must
	in     map[int]string
	left   map[int]int    // how many pods of each scope have no node yet
	room   map[string]int // how many pods more each domain has room for, beside the scopes that are there
}

// scoped returns the domains of an arrangement that nobody has been put in.
func (a *arrangement) scoped() *scoping {
	s := &scoping{scopes: a.check.scopes, in: map[int]string{}, left: map[int]int{}, room: map[string]int{}}
	for _, scope := range s.scopes {
		s.left[scope]++
	}
	for _, node := range a.nodes {
		s.room[node.Domain] += node.Pods
	}
	for scope, domain := range a.check.domains {
		s.in[scope] = domain
		s.room[domain] -= s.left[scope]
	}
	return s
}

// within returns a test for the domains in which a pod may be that was planned in one.
func (s *scoping) within(pod int, planned string) func(domain string) bool {
	if s.scopes == nil {
		return func(domain string) bool { return domain == planned }
	}
	scope := s.scopes[pod]
	return func(domain string) bool {
		if in, bound := s.in[scope]; bound {
			return domain == in
		}
		return s.room[domain] >= s.left[scope]
	}
}

// take notes that a pod has been put in a domain.
func (s *scoping) take(pod int, domain string) {
	if s.scopes == nil {
		return
	}
	scope := s.scopes[pod]
	if _, bound := s.in[scope]; !bound {
		s.in[scope] = domain
		s.room[domain] -= s.left[scope]
	}
}
