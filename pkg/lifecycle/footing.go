package lifecycle

import (
	"cmp"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// footing is what a Run has to go on with: each value is worked out once, from those above it.
type footing struct {
	facts  *facts
	cuts   cuts
	width  width
	roster roster
	swaps  swaps
	// restarts is what becomes of ranks that have died.
	restarts restarts
	// edited says that a gang which is starting starts again, since its spec was edited.
	edited bool
}

func footingOf(f *facts) footing {
	t := footing{facts: f, cuts: cutsOf(f)}
	w := widthOf(f, &t.cuts)
	t.width, t.roster = w, rosterAt(f, w)
	f.Problem = cmp.Or(f.Problem, t.nameKept())
	t.width, t.roster = settled(f, t.width, t.roster)
	t.restarts = restartsOf(f, &t.cuts, &t.roster)
	if !f.opportunistic() {
		t.swaps = swapsOf(f, &t.cuts, t.width, &t.roster)
	}
	if to := t.swaps.narrower; t.swaps.stuck && to > 0 && to < t.width.granted { // it goes on narrower (R27)
		t.swaps.stuck = false
		t.width = t.width.resized(to, 0)
		t.roster = rosterAt(f, t.width)
	}
	if to := f.Drain.Narrower; to > 0 && to < t.width.granted { // so do ranks find room that leave their nodes (R35)
		t.width = t.width.resized(to, 0)
		t.roster = rosterAt(f, t.width)
	}
	t.edited = edited(f, &t.cuts, &t.roster)
	return t
}

// has reports whether the Run has a part at its width, or grows by it.
func (t *footing) has(part rank.Part) bool { return t.facts.Shape == nil && t.width.shape.Has(part) }
