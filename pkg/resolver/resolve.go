package resolver

import (
	"slices"
	"sort"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Resolve chooses what is cut so that the Run that waits starts (R19). Only what the published conflict set lists is
// cut, and tickets are drawn with the nonce: the same record gives the same draws, also after a restart. A ticket whose
// candidate holds nothing any more frees nothing, and drawing goes on. Resolve returns false if the Run would not start
// even with all of it cut. The fleet behind w is left as it was.
func Resolve(w Feasibility, candidates []Candidate, published []rqv1.Conflict, nonce [32]byte) (Plan, bool) {
	t := newSimulation(w, within(candidates, published))
	defer t.restore()
	return t.resolve(NewDraw(nonce, published), published)
}

// resolve does so by one draw.
func (t *simulation) resolve(d *Draw, published []rqv1.Conflict) (Plan, bool) {
	if t.fits() {
		return Plan{}, true
	}
	if !t.possible() {
		return Plan{}, false
	}
	order := t.structural()
	lottery := len(order)
	draws, until := t.drawAll(d)
	for _, d := range until {
		order = append(order, t.unitOf[draws[d-1].Run])
	}
	n := t.cutUntilFits(order)
	if n <= lottery {
		t.putBackUnneeded(nil)
		return Plan{Cuts: asListed(t.cuts(), published)}, true
	}
	t.putBackUnneeded(order[lottery:n])
	paid := t.pay(order[lottery:n])
	return Plan{Cuts: asListed(t.cuts(), published), Draws: t.record(draws[:until[n-lottery-1]], paid)}, true
}

// asListed has cuts say no more GPUs than the conflict set lists: after a restart a Run may hold more than when that
// was published, and what it holds besides goes with it.
func asListed(cuts []rqv1.Cut, published []rqv1.Conflict) []rqv1.Cut {
	for i := range cuts {
		if most := listedGPUs(&cuts[i], published); most > 0 {
			cuts[i].GPUs = int32(min(int64(cuts[i].GPUs), most))
		}
	}
	return cuts
}

// listedGPUs returns how many GPUs the conflict set lists for a cut. A Run that ends loses all that its entries list.
func listedGPUs(c *rqv1.Cut, published []rqv1.Conflict) (most int64) {
	for i := range published {
		if e := &published[i]; e.Run == c.Run && (e.Action == c.Action || c.Action == rqv1.CutLottery) {
			most += int64(e.GPUs)
		}
	}
	return most
}

// structural lists the units that are cut before any ticket is drawn.
func (t *simulation) structural() []int {
	var order []int
	for p, unit := range t.units {
		if unit.action != rqv1.CutLottery {
			order = append(order, p)
		}
	}
	return order
}

// drawAll draws all tickets, and says after how many draws each that frees something has come.
func (t *simulation) drawAll(d *Draw) (draws []Ticket, until []int) {
	for ticket, ok := d.Next(); ok; ticket, ok = d.Next() {
		draws = append(draws, ticket)
		if _, ok := t.unitOf[ticket.Run]; ok {
			until = append(until, len(draws))
		}
	}
	return draws, until
}

// cutUntilFits cuts units in order, on top of what is cut, until the Run fits, and returns how many it takes; all of
// them are known to be enough. What fits still fits when more is cut, so binary search finds the number with few
// questions.
func (t *simulation) cutUntilFits(order []int) int {
	base := t.chosen
	cut := func(n int) {
		t.chosen = slices.Clone(base)
		t.chosen.add(order[:n]...)
	}
	n := sort.Search(len(order), func(n int) bool {
		cut(n)
		return t.fits()
	})
	cut(n)
	return n
}

// putBackUnneeded takes back what is not needed: tickets in the order of drawing, then steps and spares in the order of
// being cut, and last what is on loan. The last ticket is needed, for without it the Run did not fit. When a ticket
// stays, the spares and steps of its Run go with it; when it is taken back they are cuts of their own again.
func (t *simulation) putBackUnneeded(drawn []int) {
	for i, p := range drawn {
		if i < len(drawn)-1 {
			t.putBack(p)
		}
	}
	t.putBackSteps(rqv1.CutShrink)
	for p, unit := range t.units {
		if unit.action == rqv1.CutDropSpare && t.chosen.has(p) && !t.endsAll(unit.candidate) {
			t.putBack(p)
		}
	}
	t.putBackSteps(rqv1.CutReturn)
}

// putBackSteps widens Runs again, a step for each that was given up by an action. A Run gets its last step back first,
// so that its width has no holes; once that one is needed, so are those before it.
func (t *simulation) putBackSteps(action rqv1.CutAction) {
	needed := make([]bool, len(t.candidates))
	for _, unit := range t.units {
		if unit.action == action && !needed[unit.candidate] && !t.endsAll(unit.candidate) {
			last, ok := t.lastStep(unit.candidate)
			ok = ok && t.units[last].action == action
			needed[unit.candidate] = !ok || !t.putBack(last)
		}
	}
}

// lastStep is the last step that a candidate gave up and has not got back, if there is one.
func (t *simulation) lastStep(candidate int) (int, bool) {
	for _, p := range slices.Backward(t.of[candidate]) {
		if _, step := t.goesWith[p]; step && t.chosen.has(p) {
			return p, true
		}
	}
	return 0, false
}

// putBack takes one unit back, unless the Run would not fit then.
func (t *simulation) putBack(p int) bool {
	t.chosen.remove(p)
	if t.fits() {
		return true
	}
	t.chosen.add(p)
	return false
}
