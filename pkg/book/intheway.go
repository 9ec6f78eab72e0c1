package book

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// rejection returns which nodes other rules keep a gang from that gets no date: those that they keep it from now or, if
// there are none, those where they would although others were cut for it.
func (f *horizon) rejection(g *gang, pod *corev1.Pod, state forecast.State, ask forecast.Ask) *plan.Rejection {
	if now := g.refusal.Rejected; now != nil && !now.Vain || g.unpaid || state.Fleet == nil {
		return now
	}
	if c := &g.check; len(c.shunned) > 0 {
		out := &plan.Rejection{Vain: true, Rest: c.until.Sub(state.Now)}
		for node, why := range c.shunned {
			out.Add(node, why)
		}
		return out
	}
	return f.inTheWay(g, pod, state, ask)
}

// inTheWay returns the nodes on which a gang that gets no date would start if it asked for GPUs alone, and that have
// too little beside them even with everybody gone who may go; nil when there are none.
func (f *horizon) inTheWay(g *gang, pod *corev1.Pod, state forecast.State, ask forecast.Ask) *plan.Rejection {
	d := ask.Demand
	if d.Beside == nil {
		return nil
	}
	ask.Demand.Beside, ask.Excluded = nil, f.nodes.barred(d.Flavor, pod)
	p, _ := forecast.Earliest(state, ask)
	if p == nil {
		return nil
	}
	fork := plan.NewFork(f.fleet, f.accounts)
	defer fork.Revert()
	on := map[string]bool{}
	for i := range p.Nodes {
		on[p.Nodes[i].Node] = true
	}
	for uid, h := range f.seats.held {
		if m := f.roster.members[uid]; on[h.node] && m != nil && !h.shard {
			fork.Give(h.node, h.gpus, h.beside)
		}
	}
	out := &plan.Rejection{Known: true, Vain: true}
	for i := range p.Nodes {
		node := p.Nodes[i].Node
		if lacks := f.fleet.Lacks(node, d.Beside, p.Nodes[i].GPUs/d.GPUsPerPod); lacks != "" {
			out.Add(node, ruleOn(lacks))
		}
	}
	if out.Nodes == 0 {
		return nil
	}
	return out
}
