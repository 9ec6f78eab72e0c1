package book

import (
	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// yields reports whether a gang that waits has no pods for now, since an older one has its turn.
func (r *roster) yields(g *gang) bool {
	if g.run == nil || len(r.turns) == 0 {
		return false
	}
	t, given := r.turns[g.run.Namespace]
	return given && t.of != g && t.of.run != nil && byAge(g, t.of) > 0 && g.run.Status.Phase == rqv1.RunPending &&
		!g.opportunistic() && !g.underWay() && !g.keepsRoom() && !g.activates()
}
