package book

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// rejection returns which nodes other rules keep a gang from that gets no date by a study: those that they keep it from
// now or, if there are none, those where they would although others were cut for it.
func (f *horizon) rejection(s *study) *plan.Rejection {
	g := s.gang
	if now := g.refusal.Rejected; now != nil && !now.Vain || g.unpaid {
		return now
	}
	shunned := g.check.cuts.said()
	if c := &g.check; !c.until.IsZero() && len(shunned)+len(c.reaches) > 0 {
		out := &plan.Rejection{Vain: true, Rest: c.rest(s.state.Now)}
		for node, why := range shunned {
			out.Add(node, why)
		}
		for node, why := range c.beyondFirst() {
			if shunned[node] == "" {
				out.Add(node, why)
			}
		}
		return out
	}
	return f.inTheWay(s)
}

// gpusAlone returns what a gang would ask for if it were GPUs alone, where it is worth knowing when it would start
// then: it asks for more, and it is not known what keeps it from the nodes.
func (f *horizon) gpusAlone(g *gang, pod *corev1.Pod, ask forecast.Ask) *forecast.Ask {
	now := g.refusal
	if now == nil || now.Rejected != nil && !now.Rejected.Vain || g.unpaid || ask.Demand.Beside == nil ||
		len(g.check.cuts.said())+len(g.check.reaches) > 0 {
		return nil
	}
	ask.Demand.Beside, ask.Missing, ask.Excluded = nil, plan.Alike(ask.Missing), f.nodes.barredToAny(g, pod)
	return &ask
}

// inTheWay returns the nodes on which a gang that gets no date would start if it asked for GPUs alone, and that have
// too little beside them even with everybody gone who may go; nil when there are none.
func (f *horizon) inTheWay(s *study) *plan.Rejection {
	p, d, lacking := s.byGPUsAlone, s.ask.Demand, f.nodes.lacking(s.gang)
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
		if lacks := lacking(node, p.Nodes[i].GPUs/d.GPUsPerPod); lacks != "" {
			out.Add(node, ruleOn(lacks))
		}
	}
	if out.Nodes == 0 {
		return nil
	}
	return out
}
