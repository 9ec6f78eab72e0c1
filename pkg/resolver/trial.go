package resolver

import (
	"encoding/binary"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// trial is a World and the pieces that are cut from it, for trying.
type trial struct {
	world    World
	tenants  []Tenant // by owner, namespace and name
	pieces   []piece
	of       [][]int       // pieces of each tenant, in the order of pieces
	with     map[int][]int // spares that go with a step
	cut      set           // pieces to be free
	freed    set           // pieces that the World has free
	known    map[string]bool
	key      []byte
	asked    int // how often the World was asked
	drawable map[rqv1.NamespacedName]int
}

func newTrial(w World, tenants []Tenant) *trial {
	tenants = sorted(tenants)
	all := pieces(tenants)
	t := &trial{
		world: w, tenants: tenants, pieces: all, with: map[int][]int{}, of: make([][]int, len(tenants)),
		cut: newSet(len(all)), freed: newSet(len(all)),
		known: map[string]bool{}, drawable: map[rqv1.NamespacedName]int{},
	}
	for p, piece := range all {
		t.of[piece.tenant] = append(t.of[piece.tenant], p)
		if piece.action == rqv1.CutLottery {
			t.drawable[tenants[piece.tenant].Run] = p
		}
	}
	for p, piece := range all {
		if piece.action == rqv1.CutShrink {
			t.with[p] = t.sparesOf(piece)
		}
	}
	return t
}

// sparesOf lists the spares that go with a step.
func (t *trial) sparesOf(step piece) []int {
	var out []int
	own := &t.tenants[step.tenant]
	for _, p := range t.of[step.tenant] {
		if piece := &t.pieces[p]; piece.action == rqv1.CutDropSpare &&
			slices.Contains(own.Steps[step.part].Spares, own.Spares[piece.part].Index) {
			out = append(out, p)
		}
	}
	return out
}

// gone is what is cut, and what goes with it.
func (t *trial) gone() set {
	s := slices.Clone(t.cut)
	for p, spares := range t.with {
		if t.cut.has(p) {
			s.add(spares...)
		}
	}
	return s
}

// fits says whether the Run starts with what is cut. The World is asked once for each set of cuts, and is brought up to
// date only then.
func (t *trial) fits() bool {
	gone := t.gone()
	t.key = gone.appendTo(t.key[:0])
	fits, ok := t.known[string(t.key)]
	if !ok {
		t.show(gone)
		fits = t.world.Fits()
		t.asked++
		t.known[string(t.key)] = fits
	}
	return fits
}

// show has the World free exactly the pieces of a set.
func (t *trial) show(s set) {
	for p := range t.pieces {
		switch was, is := t.freed.has(p), s.has(p); {
		case is && !was:
			t.world.Free(t.pieces[p].holds)
			t.freed.add(p)
		case was && !is:
			t.world.Hold(t.pieces[p].holds)
			t.freed.remove(p)
		}
	}
}

// restore puts the World back as it was.
func (t *trial) restore() { t.show(newSet(len(t.pieces))) }

// possible says whether the Run starts when everything is cut.
func (t *trial) possible() bool {
	for p := range t.pieces {
		t.cut.add(p)
	}
	possible := t.fits()
	t.cut = newSet(len(t.pieces))
	return possible
}

// ends says whether a tenant's ticket is among what is cut: then all of it goes.
func (t *trial) ends(tenant int) bool {
	p, ok := t.drawable[t.tenants[tenant].Run]
	return ok && t.cut.has(p)
}

// cuts states what is cut, one entry for a Run and action.
func (t *trial) cuts() []rqv1.Cut {
	var cuts []rqv1.Cut
	for _, action := range actions {
		for i := range t.tenants {
			if c := t.cutOf(i, action); c.GPUs > 0 {
				cuts = append(cuts, c)
			}
		}
	}
	return cuts
}

func (t *trial) cutOf(tenant int, action rqv1.CutAction) rqv1.Cut {
	own := &t.tenants[tenant]
	c := rqv1.Cut{Run: own.Run, UID: own.UID, Action: action}
	ends := t.ends(tenant)
	for _, p := range t.of[tenant] {
		piece := &t.pieces[p]
		if !t.cut.has(p) || (piece.action != action && !ends) || (action != rqv1.CutLottery && ends) {
			continue
		}
		c.GPUs += int32(piece.gpus)
		switch action {
		case rqv1.CutDropSpare:
			c.Spares = append(c.Spares, int32(own.Spares[piece.part].Index))
		case rqv1.CutShrink:
			width := int32(own.Steps[piece.part].Width)
			c.Width = &width
		}
	}
	slices.Sort(c.Spares)
	return c
}

// set is a set of pieces.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) has(p int) bool { return s[p/64]>>(p%64)&1 == 1 }
func (s set) remove(p int)   { s[p/64] &^= 1 << (p % 64) }

func (s set) add(pieces ...int) {
	for _, p := range pieces {
		s[p/64] |= 1 << (p % 64)
	}
}

func (s set) appendTo(key []byte) []byte {
	for _, word := range s {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	return key
}
