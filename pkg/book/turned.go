package book

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Turned records that another scheduling rule turned a pod's node down, or the pod as a whole when node is empty. The
// gang gives everything back and is planned anew without the node.
func (b *Book) Turned(pod types.UID, node, why string) {
	b.mu.Lock()
	defer b.unlock()
	if m := b.members[pod]; m != nil && m.gang.run != nil {
		b.turned(m, node, why)
	}
}

func (b *Book) turned(m *member, node, why string) {
	g := m.gang
	g.woken = false
	if g.opportunistic() {
		b.turnedShard(m, node, why)
		return
	}
	if node == "" {
		b.giveBack(m)
		b.refuse(g, &plan.Refusal{Reason: plan.NodesRejected, Spare: m.extra() && !m.joins(), Grow: m.joins(), Owner: g.run.Spec.Owner,
			Flavor: g.demand.Flavor, Rejected: &plan.Rejection{Rule: why}, Message: why})
		return
	}
	g.excluded[node] = why
	g.spurn(m, node)
	if m.stage >= writing {
		return // the ledger pins the pod to the node; the Run controller ends it if it stays stuck
	}
	places := slices.DeleteFunc(g.placesOf(), func(p resolver.Holding) bool { return g.excluded[p.Node] != "" })
	b.giveBack(m)
	if g.activating() && !g.underWay() {
		b.keepFor(g, places, g.deadline) // others were cut for it: it is the gang's until that has been planned without the node
	}
	if lead := g.leader(); lead != nil {
		g.woken = true // what it has just given back wakes others, and would have it forget the node
		b.activate(lead.pod)
	}
}

// spurn remembers that a node turned a rank of a running gang down. A spare, which asks for little, would be taken there: the rank
// would go from spare to spare for ever.
func (g *gang) spurn(m *member, node string) {
	if m.part.Spare || !g.started() {
		return
	}
	if g.spurned == nil {
		g.spurned = map[string]bool{}
	}
	g.spurned[node] = true
}

// pardon has a gang that is woken be tried again on the nodes that turned it down. A running gang is not, unless a node has changed,
// before its retry: shards and spares make room for each try, and what they free and take again would wake it for ever. Nodes that
// turned it down for want of GPUs have them as soon as whoever leaves them is gone.
func (b *Book) pardon(g *gang) {
	all := !g.started() || b.waiting.nodes[g.full.Flavor] > g.tried
	maps.DeleteFunc(g.excluded, func(_, why string) bool { return all || strings.Contains(why, b.args.GPUResource) })
}

// accept forgets which nodes turned ranks down once all ranks run, when a member has come to a stage.
func (g *gang) accept(to stage) {
	if to < bound || len(g.spurned) == 0 {
		return
	}
	for _, m := range g.active.between(0, g.active.size) {
		if m == nil || m.stage < bound {
			return
		}
	}
	g.spurned = nil
}

// unfitForSpares returns a test for the nodes that spares of a gang may not use: those that it may not use anyway, and those
// that turned its ranks down.
func (b *Book) unfitForSpares(g *gang, rejected func(node string) bool) func(node string) bool {
	if len(g.spurned) == 0 {
		return rejected
	}
	return func(node string) bool { return g.spurned[node] || rejected != nil && rejected(node) }
}

// giveBack takes back what a member's gang was assigned, or what the member was if it concerns nobody else.
func (b *Book) giveBack(m *member) {
	if !m.extra() {
		b.unwind(m.gang)
	} else if m.stage == assigned || m.stage == reserved {
		b.release(m)
	}
}

// rejection returns what other scheduling rules turned down since a gang was last woken; nil when they turned down nothing.
func (g *gang) rejection() *plan.Rejection {
	if len(g.excluded) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(g.excluded)))
	return &plan.Rejection{Nodes: len(g.excluded), Node: first, Rule: g.excluded[first]}
}

// blame adds to a refusal for want of room which nodes other scheduling rules turned down. They are its reason only where
// the gang would fit if they had not: a fleet that is full is full, whatever else was found out about one of its nodes.
func (b *Book) blame(g *gang, pod *corev1.Pod, refusal *plan.Refusal, fits func(rejected func(string) bool) bool) {
	if len(g.excluded) == 0 || !refusal.AboutRoom() {
		return
	}
	if fits(b.barred(pod)) {
		refusal.Reason = plan.NodesRejected
	}
	refusal.Without(g.rejection())
}
