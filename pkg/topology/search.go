package topology

import "slices"

// searchSteps bounds the search: counted, not timed, so that the result depends on the state alone (R30).
const searchSteps = 4000

// search is branch and bound over the candidates in order. It starts from the greedy solution and keeps what is better.
type search struct {
	draft *draft
	best  *solution
	steps int
	last  int            // the last candidate with bound pods
	ahead []suffix       // by candidate: what lies there and behind it
	units [][]unitSuffix // by level and candidate
	most  []int          // by level: the pods that the roomiest unit takes
	tier  int            // pods that the largest empty node takes
}

// suffix sums up the candidates from some candidate on.
type suffix struct{ pods, used int }

// unitSuffix sums up the candidates from some candidate on, for a level.
type unitSuffix struct {
	unit int // pods that still fit in the candidate's own unit
	open int // pods that fit in later units that are touched anyhow
}

func newSearch(d *draft, best *solution) *search {
	s := &search{draft: d, best: best, steps: searchSteps, last: -1}
	n := len(d.p.candidates)
	s.ahead = make([]suffix, n+1)
	for i := n - 1; i >= 0; i-- {
		at := &d.p.candidates[i]
		o := s.ahead[i+1]
		o.pods += at.pods - at.must
		for l := at.lo; l < at.hi; l++ {
			o.used += d.p.bins[l].used
			if e := d.p.bins[l].empty; len(e) > 0 {
				s.tier = max(s.tier, e[0].pods)
			}
		}
		s.ahead[i] = o
		if at.must > 0 && s.last < 0 {
			s.last = i
		}
	}
	s.units = make([][]unitSuffix, d.p.levels)
	s.most = make([]int, d.p.levels)
	for l := range s.units {
		s.units[l], s.most[l] = d.unitSuffixes(l)
	}
	return s
}

// unitSuffixes computes the unitSuffix of every candidate at a level, and the room of the roomiest unit.
func (d *draft) unitSuffixes(level int) (unitSuffixes []unitSuffix, most int) {
	n := len(d.p.candidates)
	unitSuffixes = make([]unitSuffix, n+1)
	for i := n - 1; i >= 0; i-- {
		at, t := &d.p.candidates[i], unitSuffixes[i+1]
		if i+1 < n && d.p.candidates[i+1].units[level] != at.units[level] {
			if d.touched[level][d.p.candidates[i+1].units[level]] > 0 {
				t.open += t.unit
			}
			t.unit = 0
		}
		t.unit += at.pods
		unitSuffixes[i] = t
		most = max(most, t.unit)
	}
	return unitSuffixes, most
}

func (s *search) run() *solution {
	if s.draft.left <= s.ahead[0].pods && s.affordable() {
		s.visit(0)
	}
	return s.best
}

// affordable is false when not even each class by itself could have as much paid for as is left.
func (s *search) affordable() bool {
	if s.draft.p.purse == nil {
		return true
	}
	room, pods := make([]int, s.draft.p.classes), 0
	for _, l := range s.draft.p.bins {
		room[l.class] += l.pods
	}
	for class, n := range room {
		pods += s.draft.afford(class, min(n, s.draft.left))
	}
	return pods >= s.draft.left
}

// payable is how many pods candidate i can take if each of its bins were the only one to be paid for.
func (s *search) payable(i int) int {
	at, pods := &s.draft.p.candidates[i], 0
	for l := at.lo; l < at.hi; l++ {
		pods += s.draft.afford(s.draft.p.bins[l].class, s.draft.p.bins[l].pods)
	}
	return pods
}

// visit decides about candidate i and all behind it.
func (s *search) visit(i int) {
	if s.steps <= 0 {
		return
	}
	s.steps--
	if s.best != nil {
		if bound := s.bound(i); !bound.less(&s.best.cost) {
			return
		}
	}
	if s.draft.left == 0 && i > s.last {
		s.best = &solution{took: slices.Clone(s.draft.took), put: slices.Clone(s.draft.put), cost: s.draft.cost}
		return
	}
	if i < len(s.draft.p.candidates) && s.draft.left <= s.ahead[i].pods {
		s.pieces(i, 0, s.draft.p.candidates[i].must)
	}
}

// bound is a cost that no completion can go below.
func (s *search) bound(i int) cost {
	c := s.draft.cost
	if s.draft.left == 0 || i == len(s.draft.p.candidates) {
		return c
	}
	for l, unitSuffixes := range s.units {
		need := s.draft.left - unitSuffixes[i].open
		if s.draft.touched[l][s.draft.p.candidates[i].units[l]] > 0 {
			need -= unitSuffixes[i].unit
		}
		if need > 0 {
			c[l] += (need + s.most[l] - 1) / s.most[l]
		}
	}
	if need := s.draft.left - s.ahead[i].used; need > 0 && s.tier > 0 {
		c[costOpened] += (need + s.tier - 1) / s.tier
	}
	return c
}

// pieces tries every number of pieces of each size on candidate i, most first, above the pods that it holds already.
func (s *search) pieces(i, size, pods int) {
	at := &s.draft.p.candidates[i]
	if size == len(s.draft.p.sizes) {
		if pods == 0 {
			s.visit(i + 1)
		} else {
			s.share(i, at.lo, at.pods, pods)
		}
		return
	}
	each := s.draft.p.sizes[size]
	for n := min(s.draft.rest[size], max(0, s.payable(i)-pods)/each); n >= 0 && s.steps > 0; n-- {
		mark := len(s.draft.log)
		s.draft.do(move{candidate: i, bin: -1, size: size, n: n})
		s.pieces(i, size+1, pods+n*each)
		s.draft.undo(mark)
	}
}

// share tries every way to split pods over the bins of candidate i from bin l on, which have the given room together.
func (s *search) share(i, l, room, pods int) {
	if l == s.draft.p.candidates[i].hi {
		s.steps--
		if pods == 0 && s.draft.covered(0, 0) {
			s.visit(i + 1)
		}
		return
	}
	room -= s.draft.p.bins[l].pods
	for n := min(pods, s.draft.p.bins[l].pods); n >= max(0, pods-room) && s.steps > 0; n-- {
		mark := len(s.draft.log)
		s.draft.do(move{candidate: i, bin: l, n: n})
		s.share(i, l+1, room, pods-n)
		s.draft.undo(mark)
	}
}
