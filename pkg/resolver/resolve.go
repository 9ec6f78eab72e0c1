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
	if len(drawn) > 0 {
		t.putBackEach(drawn[:len(drawn)-1], false)
	}
	t.putBackEach(t.stepsToPutBack(rqv1.CutShrink), true)
	var spares []int
	for p, unit := range t.units {
		if unit.action == rqv1.CutDropSpare && t.chosen.has(p) && !t.endsAll(unit.candidate) {
			spares = append(spares, p)
		}
	}
	t.putBackEach(spares, false)
	t.putBackEach(t.stepsToPutBack(rqv1.CutReturn), true)
}

// stepsToPutBack lists the steps that were given up by an action so that Runs are widened in turn, each from its last
// step on: its width has no holes.
func (t *simulation) stepsToPutBack(action rqv1.CutAction) []int {
	var order []int
	next := map[int][]int{}
	for _, unit := range t.units {
		if unit.action != action || t.endsAll(unit.candidate) {
			continue
		}
		steps, known := next[unit.candidate]
		if !known {
			steps = t.lastSteps(unit.candidate, action)
		}
		if len(steps) > 0 {
			order, steps = append(order, steps[0]), steps[1:]
		}
		next[unit.candidate] = steps
	}
	return order
}

// lastSteps lists the last steps that a candidate gave up, as far as it was by an action, the last first.
func (t *simulation) lastSteps(candidate int, action rqv1.CutAction) []int {
	var out []int
	for _, p := range slices.Backward(t.of[candidate]) {
		if _, step := t.goesWith[p]; !step || !t.chosen.has(p) {
			continue
		}
		if t.units[p].action != action {
			break
		}
		out = append(out, p)
	}
	return out
}

// putBackEach takes units back one after the other, but those without which the Run would not fit then. Of steps, those
// of the same Run that come after one that is needed are needed as well. What does not fit without many does not fit
// without more, so those that are not needed are found with few questions.
func (t *simulation) putBackEach(order []int, steps bool) {
	for len(order) > 0 {
		n := t.unneeded(order)
		t.chosen.remove(order[:n]...)
		if n == len(order) {
			return
		}
		needed := t.units[order[n]].candidate
		order = order[n+1:]
		if steps {
			order = slices.DeleteFunc(slices.Clone(order), func(p int) bool { return t.units[p].candidate == needed })
		}
	}
}

// unneeded returns without how many of the first units the Run fits.
func (t *simulation) unneeded(order []int) int {
	without := func(n int) bool {
		before := t.chosen
		t.chosen = slices.Clone(before)
		t.chosen.remove(order[:n]...)
		fits := t.fits()
		t.chosen = before
		return fits
	}
	n := 0
	for fits := 0; n < len(order); fits++ {
		more := min(n+1<<(fits/2), len(order)) // often there are few between two that are needed
		if !without(more) {
			return n + sort.Search(more-n-1, func(i int) bool { return !without(n + i + 1) })
		}
		n = more
	}
	return n
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
