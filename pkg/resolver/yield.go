package resolver

import (
	"cmp"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Yielder is a Run that may give GPUs to a lost rank of a Run of its owner that has a higher priority (R44).
type Yielder struct {
	Candidate
	Priority int32
	// Started is when it started: of those of one priority the youngest ends first.
	Started time.Time
}

// Yield chooses what Runs of one owner give up so that a rank of another of its Runs has room (R44). Those of the
// lowest priority come first: of them what is on loan, spares and steps, and Runs as a whole where these do not do.
// Nobody gives up what turns out not to be needed. Yield returns false if all of it would not do. The fleet
// behind w is left as it was.
func Yield(w Feasibility, yielders []Yielder) ([]rqv1.Cut, bool) {
	rankOf, candidates := map[rqv1.NamespacedName]*Yielder{}, make([]Candidate, len(yielders))
	for i := range yielders {
		candidates[i] = yielders[i].Candidate
		rankOf[yielders[i].Run] = &yielders[i]
	}
	t := newSimulation(w, candidates)
	defer t.restore()
	if !t.possible() {
		return nil, false
	}
	order := t.yieldOrder(rankOf)
	n := t.cutUntilFits(order)
	for _, p := range slices.Backward(order[:n]) {
		if t.units[p].action == rqv1.CutLottery {
			t.putBack(p)
		}
	}
	t.putBackUnneeded(nil)
	return t.cuts(), true
}

// yieldOrder returns all units in the order in which they are given up.
func (t *simulation) yieldOrder(rankOf map[rqv1.NamespacedName]*Yielder) []int {
	order := make([]int, len(t.units))
	for p := range order {
		order[p] = p
	}
	owner := func(p int) *Yielder { return rankOf[t.candidates[t.units[p].candidate].Run] }
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := owner(a), owner(b)
		byAction := cmp.Compare(slices.Index(actions, t.units[a].action), slices.Index(actions, t.units[b].action))
		if byAction == 0 && t.units[a].action == rqv1.CutLottery {
			byAction = cmp.Or(y.Started.Compare(x.Started), byName(x.Run, y.Run))
		}
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), byAction)
	})
	return order
}
