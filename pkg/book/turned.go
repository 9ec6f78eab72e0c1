package book

import (
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

func (x *starter) turned(m *member, node, why string) {
	g := m.gang
	g.woken = false
	if g.opportunistic() {
		x.turnedShard(m, node, why)
		return
	}
	if node == "" {
		x.places.giveBack(m)
		refusal := &plan.Refusal{Reason: plan.NodesRejected, Spare: m.part.Spare && m.extra() && !m.joins(),
			Grow: m.joins(), Belated: m.belated(), Owner: g.run.Spec.Owner, Flavor: g.demand.Flavor,
			Since:    m.pod.CreationTimestamp.Time,
			Rejected: &plan.Rejection{Rule: why}, Message: why}
		x.nodes.sayDomain(refusal, g)
		x.waiting.refuse(g, refusal)
		return
	}
	g.exclude(m, node, why, g.isOfFewKinds())
	g.spurn(m, node)
	if m.stage >= writing {
		return // the ledger pins the pod to the node; the Run controller ends it if it stays stuck
	}
	turned := g.turnedBy()
	places := slices.DeleteFunc(g.placesOf(), func(p resolver.Holding) bool { return turned[p.Node] != "" })
	x.places.giveBack(m)
	if g.activating() && !g.underWay() {
		// others were cut for it: it is the gang's until that has been planned without the node
		x.kept.keepFor(g, places, g.deadline)
	}
	if lead := g.leader(); lead != nil {
		x.waiting.rouse(g) // what it has just given back wakes others, and would have it forget the node
		x.mail.activate(lead.pod)
	}
}

// turnedShard takes a shard from a node that another scheduling rule turned down. It is placed elsewhere, or there
// again after a while.
func (x *starter) turnedShard(m *member, node, why string) {
	m.gang.excluded[node] = why
	if m.stage == assigned {
		x.places.release(m)
	}
}
