package book

import (
	"cmp"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// holding returns what a member holds: a spare as much as a rank.
func (g *gang) holding(m *member) resolver.Holding {
	held := resolver.Holding{Node: m.node, GPUs: g.demand.GPUsPerPod, Beside: m.beside}
	if m.part.Spare {
		held.Beside = g.asks(m.part, nil)
	}
	return held
}

// placesOf returns what a gang has been given and nothing else says yet.
func (g *gang) placesOf() []resolver.Holding {
	var out []resolver.Holding
	for m := range g.all() {
		if m.stage == assigned || m.stage == reserved {
			out = append(out, g.holding(m))
		}
	}
	return out
}

// scope is what must lie in one domain together: the member's group, or the whole gang.
func (g *gang) scope(m *member) int {
	if g.demand.OneDomain {
		return 0
	}
	return m.group()
}

// missingPod says where a pod without a node may go.
func (g *gang) missingPod(m *member, domains map[int]string) plan.Missing {
	out := plan.Missing{Part: m.part, Domain: domains[g.scope(m)]}
	if out.Spare {
		first := m.group() * g.demand.PodsPerGroup
		for _, other := range g.active.between(first, first+g.demand.PodsPerGroup) {
			if other != nil && other.placed() {
				out.Beside = append(out.Beside, other.node)
			}
		}
	}
	return out
}

// gather has missing pods that are free to go to any domain go where others of their group are about to be.
func (g *gang) gather(seated []plan.Assignment, missing []plan.Missing) {
	for i := range missing {
		m := &missing[i]
		at := g.besideOne(seated, m.Part)
		if at >= 0 && (m.Domain == "" || m.Domain == unknown && seated[at].Domain != "") {
			m.Domain = cmp.Or(seated[at].Domain, unknown)
		}
	}
}

// besideOne returns the first of some places that a rank shares a domain with; -1 where there is none.
func (g *gang) besideOne(places []plan.Assignment, part rank.Part) int {
	return slices.IndexFunc(places, func(a plan.Assignment) bool {
		return !part.Spare && (g.demand.OneDomain || g.demand.Confined && a.Group == g.demand.Group(part))
	})
}

// notYet refuses a gang for now: what stands in its way passes by itself.
func (g *gang) notYet(message string) *plan.Refusal {
	return &plan.Refusal{Reason: plan.NotYet, Owner: g.demand.Owner, Flavor: g.demand.Flavor, Message: message}
}

// unknown stands for the domain of ranks that must go where the rest of their group is, when nobody knows where that
// is.
const unknown = "?"

// evictors returns the nodes that ranks of a gang which have no other place yet avoid, for what has become of their
// pods there within an hour before the rank's pod was made (R27). A gang of which nothing has a place is not that one
// any more, and one that has no other room goes there all the same.
func (g *gang) evictors() (nodes []string) {
	anywhere := func(*member) bool { return true } // what has succeeded is nowhere
	if !g.started() && !g.touches(anywhere) || g.active.first() == nil {
		return nil
	}
	for index, m := range g.active.between(0, g.active.size) {
		nodes = append(nodes, g.evicting(index, m)...)
	}
	return nodes
}

// evicting returns those that one rank avoids.
func (g *gang) evicting(index int, m *member) (nodes []string) {
	last := g.latest[rank.Part{Index: index}]
	if m == nil || m.stage != unplaced || last == nil || last.reason != rqv1.ClosedEvicted {
		return nil
	}
	made, deaths := m.pod.CreationTimestamp.Time, g.run.Status.Deaths
	avoided, shut := ending.Avoided(deaths, index, made)
	if g.returns {
		return shut
	}
	told := slices.ContainsFunc(deaths, func(d rqv1.RunDeath) bool { return d.Pod == last.pod })
	if !told && made.Sub(last.ended) < ending.BlamedFor {
		return append(avoided, last.node)
	}
	return avoided
}
