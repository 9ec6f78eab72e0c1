package resolver

import (
	"slices"
	"sort"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Resolve chooses what is cut so that the Run that waits starts (R19). Only what the published conflict set lists is
// cut, and tickets are drawn with the nonce: the same record gives the same draws, also after a restart. A ticket whose
// tenant holds nothing any more frees nothing, and drawing goes on. Resolve returns false if the Run would not start
// even with all of it cut. The World is left as it was.
func Resolve(w World, tenants []Tenant, published []rqv1.Conflict, nonce [32]byte) (Plan, bool) {
	t := newTrial(w, within(tenants, published))
	defer t.restore()
	if t.fits() {
		return Plan{}, true
	}
	if !t.possible() {
		return Plan{}, false
	}
	order := t.structure()
	lottery := len(order)
	draws, until := t.draw(NewDraw(nonce, published))
	for _, d := range until {
		order = append(order, t.drawable[draws[d-1].Run])
	}
	n := t.cutUntilFits(order)
	if n <= lottery {
		t.takeBack(nil)
		return Plan{Cuts: t.cuts()}, true
	}
	t.takeBack(order[lottery:n])
	return Plan{Cuts: t.cuts(), Draws: draws[:until[n-lottery-1]]}, true
}

// structure lists the pieces that are cut before any ticket is drawn.
func (t *trial) structure() []int {
	var order []int
	for p, piece := range t.pieces {
		if piece.action != rqv1.CutLottery {
			order = append(order, p)
		}
	}
	return order
}

// draw draws all tickets, and says after how many draws each that frees something has come.
func (t *trial) draw(d *Draw) (draws []Ticket, until []int) {
	for ticket, ok := d.Next(); ok; ticket, ok = d.Next() {
		draws = append(draws, ticket)
		if _, ok := t.drawable[ticket.Run]; ok {
			until = append(until, len(draws))
		}
	}
	return draws, until
}

// cutUntilFits cuts pieces in order, on top of what is cut, until the Run fits, and returns how many it takes; all of
// them are known to be enough. What fits still fits when more is cut, so the number is found by halving, with few
// questions.
func (t *trial) cutUntilFits(order []int) int {
	base := t.cut
	cut := func(n int) {
		t.cut = slices.Clone(base)
		t.cut.add(order[:n]...)
	}
	n := sort.Search(len(order), func(n int) bool {
		cut(n)
		return t.fits()
	})
	cut(n)
	return n
}

// takeBack takes back what is not needed: tickets in the order of drawing, then steps and spares in the order of being
// cut. The last ticket is needed, for without it the Run did not fit. When a ticket stays, the spares and steps of its
// Run go with it; when it is taken back they are cuts of their own again.
func (t *trial) takeBack(drawn []int) {
	for i, p := range drawn {
		if i < len(drawn)-1 {
			t.putBack(p)
		}
	}
	t.takeBackSteps()
	for p, piece := range t.pieces {
		if piece.action == rqv1.CutDropSpare && t.cut.has(p) && !t.ends(piece.tenant) {
			t.putBack(p)
		}
	}
}

// takeBackSteps widens Runs again, a step for each that was cut. A Run gets its last step back first, so that its width
// has no holes; once that one is needed, so are those before it.
func (t *trial) takeBackSteps() {
	needed := make([]bool, len(t.tenants))
	for _, piece := range t.pieces {
		if piece.action == rqv1.CutShrink && !needed[piece.tenant] && !t.ends(piece.tenant) {
			last, ok := t.lastStep(piece.tenant)
			needed[piece.tenant] = !ok || !t.putBack(last)
		}
	}
}

// lastStep is the last step that a tenant gave up and has not got back, if there is one.
func (t *trial) lastStep(tenant int) (int, bool) {
	for _, p := range slices.Backward(t.of[tenant]) {
		if t.pieces[p].action == rqv1.CutShrink && t.cut.has(p) {
			return p, true
		}
	}
	return 0, false
}

// putBack takes one piece back, unless the Run would not fit then.
func (t *trial) putBack(p int) bool {
	t.cut.remove(p)
	if t.fits() {
		return true
	}
	t.cut.add(p)
	return false
}
