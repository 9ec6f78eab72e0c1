package book

import rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"

// started reports whether the whole gang was bound.
func (g *gang) started() bool { return g.run != nil && g.run.Status.Phase == rqv1.RunRunning }

// over reports whether the Run has ended.
func (g *gang) over() bool {
	return g.run != nil && g.run.Ended()
}

// underWay reports whether a member that the barrier waits for has a node.
func (g *gang) underWay() bool { return g.active.assigned > 0 || !g.started() && g.spares.assigned > 0 }

// complete reports whether every pod of the gang exists, at the width that it has. Once it has started, spares may lack.
func (g *gang) complete() bool {
	return g.run != nil && g.shape == nil && g.active.whole() && (g.started() || g.spares.whole())
}

// ready reports whether every member that the barrier waits for has reached it.
func (g *gang) ready() bool {
	return g.complete() && g.active.reserved == g.active.size && (g.started() || g.spares.reserved == g.spares.size)
}

// leader returns the member that plans for the gang: the unplaced one of lowest index, active pods first, surplus ones
// never. It is nil when all are placed.
func (g *gang) leader() *member {
	if m := g.active.first(); m != nil {
		return m
	}
	return g.spares.first()
}
