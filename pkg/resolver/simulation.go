package resolver

import (
	"encoding/binary"
	"math"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// simulation cuts units on trial and asks whether the Run starts then.
type simulation struct {
	feasibility Feasibility
	candidates  []Candidate // by owner, namespace and name
	units       []unit
	of          [][]int       // units of each candidate, in the order of units
	goesWith    map[int][]int // spares that go with a step
	chosen      set           // units to be free
	freed       set           // units that are free in the fleet behind feasibility
	answers     map[string]bool
	key         []byte
	asks        int // how many questions feasibility was asked
	left        int // how many questions may be asked, new ones or not; then nothing fits
	unitOf      map[rqv1.NamespacedName]int
	ownerOf     []int // owners of the candidates, counted as they come
	share       int   // questions that one owner has to find who pays
}

func newSimulation(w Feasibility, candidates []Candidate) *simulation {
	candidates = ranked(sorted(candidates))
	all := unitsOf(candidates)
	t := &simulation{
		feasibility: w, candidates: candidates, units: all, goesWith: map[int][]int{}, of: make([][]int, len(candidates)),
		chosen: newSet(len(all)), freed: newSet(len(all)),
		answers: map[string]bool{}, unitOf: map[rqv1.NamespacedName]int{}, left: math.MaxInt,
	}
	t.ownerOf, t.share = owners(candidates)
	for p, unit := range all {
		t.of[unit.candidate] = append(t.of[unit.candidate], p)
		if unit.action == rqv1.CutLottery {
			t.unitOf[candidates[unit.candidate].Run] = p
		}
	}
	for p, unit := range all {
		if unit.action.Narrows() {
			t.goesWith[p] = t.sparesOf(unit)
		}
	}
	return t
}

// sparesOf lists the spares that go with a step.
func (t *simulation) sparesOf(step unit) []int {
	var out []int
	own := &t.candidates[step.candidate]
	for _, p := range t.of[step.candidate] {
		if unit := &t.units[p]; unit.action == rqv1.CutDropSpare &&
			slices.Contains(own.Steps[step.index].Spares, own.Spares[unit.index].Index) {
			out = append(out, p)
		}
	}
	return out
}

// freedByChoice is the units that are chosen and the spares that go with them.
func (t *simulation) freedByChoice() set {
	s := slices.Clone(t.chosen)
	for p, spares := range t.goesWith {
		if t.chosen.has(p) {
			s.add(spares...)
		}
	}
	return s
}

// fits says whether the Run starts with what is chosen. It asks once for each set of units, and brings the fleet up to
// date only then.
func (t *simulation) fits() bool {
	if t.left <= 0 {
		return false
	}
	t.left--
	gone := t.freedByChoice()
	t.key = gone.appendTo(t.key[:0])
	fits, ok := t.answers[string(t.key)]
	if !ok {
		t.apply(gone)
		fits = t.feasibility.Fits()
		t.asks++
		t.answers[string(t.key)] = fits
	}
	return fits
}

// apply frees exactly the units of a set.
func (t *simulation) apply(s set) {
	for p := range t.units {
		switch was, is := t.freed.has(p), s.has(p); {
		case is && !was:
			t.feasibility.Free(t.units[p].holds)
			t.freed.add(p)
		case was && !is:
			t.feasibility.Hold(t.units[p].holds)
			t.freed.remove(p)
		}
	}
}

// restore puts the fleet back as it was.
func (t *simulation) restore() { t.apply(newSet(len(t.units))) }

// possible says whether the Run starts when everything is cut.
func (t *simulation) possible() bool {
	for p := range t.units {
		t.chosen.add(p)
	}
	possible := t.fits()
	t.chosen = newSet(len(t.units))
	return possible
}

// endsAll says whether a candidate's ticket is among what is cut: then all of it goes.
func (t *simulation) endsAll(candidate int) bool {
	p, ok := t.unitOf[t.candidates[candidate].Run]
	return ok && t.chosen.has(p)
}

// cuts states what is cut, one entry for a Run and action.
func (t *simulation) cuts() []rqv1.Cut {
	var cuts []rqv1.Cut
	for _, action := range actions {
		for i := range t.candidates {
			if c := t.cutOf(i, action); c.GPUs > 0 {
				cuts = append(cuts, c)
			}
		}
	}
	return cuts
}

func (t *simulation) cutOf(candidate int, action rqv1.CutAction) rqv1.Cut {
	own := &t.candidates[candidate]
	c := rqv1.Cut{Run: own.Run, UID: own.UID, Action: action}
	ends := t.endsAll(candidate)
	for _, p := range t.of[candidate] {
		unit := &t.units[p]
		if !t.chosen.has(p) || (unit.action != action && !ends) || (action != rqv1.CutLottery && ends) {
			continue
		}
		c.GPUs += int32(unit.gpus)
		switch action {
		case rqv1.CutDropSpare:
			c.Spares = append(c.Spares, int32(own.Spares[unit.index].Index))
		case rqv1.CutShrink, rqv1.CutReturn:
			width := int32(own.Steps[unit.index].Width)
			c.Width = &width
		}
	}
	slices.Sort(c.Spares)
	return c
}

// set is a set of units.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) has(p int) bool { return s[p/64]>>(p%64)&1 == 1 }

func (s set) remove(units ...int) {
	for _, p := range units {
		s[p/64] &^= 1 << (p % 64)
	}
}

func (s set) add(units ...int) {
	for _, p := range units {
		s[p/64] |= 1 << (p % 64)
	}
}

// changed is a set with what has changed from one set to another.
func (s set) changed(from, to set) set {
	out := slices.Clone(s)
	for i := range out {
		out[i] = out[i]&^(from[i]&^to[i]) | to[i]&^from[i]
	}
	return out
}

func (s set) appendTo(key []byte) []byte {
	for _, word := range s {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	return key
}
