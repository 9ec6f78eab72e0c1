package topology

import "slices"

// searchSteps bounds the search: counted, not timed, so that the result depends on the state alone (R30).
const searchSteps = 4000

// search is branch and bound over the sites in order. It starts from the greedy solution and keeps what is better.
type search struct {
	*draft
	best  *solution
	steps int
	last  int       // the last site with bound pods
	ahead []outlook // by site: what lies there and behind it
	units [][]tail  // by level and site
	most  []int     // by level: the pods that the roomiest unit takes
	tier  int       // pods that the largest empty node takes
}

// outlook sums up the sites from one on.
type outlook struct{ pods, used int }

// tail sums up the sites from one on, for a level.
type tail struct {
	unit int // pods that still fit in the site's own unit
	open int // pods that fit in later units that are touched anyhow
}

func newSearch(d *draft, best *solution) *search {
	s := &search{draft: d, best: best, steps: searchSteps, last: -1}
	n := len(d.p.sites)
	s.ahead = make([]outlook, n+1)
	for i := n - 1; i >= 0; i-- {
		at := &d.p.sites[i]
		o := s.ahead[i+1]
		o.pods += at.pods - at.must
		for l := at.lo; l < at.hi; l++ {
			o.used += d.p.lots[l].used
			if e := d.p.lots[l].empty; len(e) > 0 {
				s.tier = max(s.tier, e[0].pods)
			}
		}
		s.ahead[i] = o
		if at.must > 0 && s.last < 0 {
			s.last = i
		}
	}
	s.units = make([][]tail, d.p.levels)
	s.most = make([]int, d.p.levels)
	for l := range s.units {
		s.units[l], s.most[l] = d.tails(l)
	}
	return s
}

// tails computes the tail of every site at a level, and the room of the roomiest unit.
func (d *draft) tails(level int) (tails []tail, most int) {
	n := len(d.p.sites)
	tails = make([]tail, n+1)
	for i := n - 1; i >= 0; i-- {
		at, t := &d.p.sites[i], tails[i+1]
		if i+1 < n && d.p.sites[i+1].units[level] != at.units[level] {
			if d.touched[level][d.p.sites[i+1].units[level]] > 0 {
				t.open += t.unit
			}
			t.unit = 0
		}
		t.unit += at.pods
		tails[i] = t
		most = max(most, t.unit)
	}
	return tails, most
}

func (s *search) run() *solution {
	if s.left <= s.ahead[0].pods && s.affordable() {
		s.visit(0)
	}
	return s.best
}

// affordable is false when not even each class by itself could have as much paid for as is left.
func (s *search) affordable() bool {
	if s.p.purse == nil {
		return true
	}
	room, pods := make([]int, s.p.classes), 0
	for _, l := range s.p.lots {
		room[l.class] += l.pods
	}
	for class, n := range room {
		pods += s.afford(class, min(n, s.left))
	}
	return pods >= s.left
}

// payable is how many pods site i can take if each of its lots were the only one to be paid for.
func (s *search) payable(i int) int {
	at, pods := &s.p.sites[i], 0
	for l := at.lo; l < at.hi; l++ {
		pods += s.afford(s.p.lots[l].class, s.p.lots[l].pods)
	}
	return pods
}

// visit decides about site i and all behind it.
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
	if s.left == 0 && i > s.last {
		s.best = &solution{took: slices.Clone(s.took), put: slices.Clone(s.put), cost: s.cost}
		return
	}
	if i < len(s.p.sites) && s.left <= s.ahead[i].pods {
		s.pieces(i, 0, s.p.sites[i].must)
	}
}

// bound is a cost that no completion can go below.
func (s *search) bound(i int) cost {
	c := s.cost
	if s.left == 0 || i == len(s.p.sites) {
		return c
	}
	for l, tails := range s.units {
		need := s.left - tails[i].open
		if s.touched[l][s.p.sites[i].units[l]] > 0 {
			need -= tails[i].unit
		}
		if need > 0 {
			c[l] += (need + s.most[l] - 1) / s.most[l]
		}
	}
	if need := s.left - s.ahead[i].used; need > 0 && s.tier > 0 {
		c[costOpened] += (need + s.tier - 1) / s.tier
	}
	return c
}

// pieces tries every number of pieces of each size on site i, most first, above the pods that it holds already.
func (s *search) pieces(i, size, pods int) {
	at := &s.p.sites[i]
	if size == len(s.p.sizes) {
		if pods == 0 {
			s.visit(i + 1)
		} else {
			s.share(i, at.lo, at.pods, pods)
		}
		return
	}
	each := s.p.sizes[size]
	for n := min(s.rest[size], max(0, s.payable(i)-pods)/each); n >= 0 && s.steps > 0; n-- {
		mark := len(s.log)
		s.do(move{site: i, lot: -1, size: size, n: n})
		s.pieces(i, size+1, pods+n*each)
		s.undo(mark)
	}
}

// share tries every way to split pods over the lots of site i from lot l on, which have the given room together.
func (s *search) share(i, l, room, pods int) {
	if l == s.p.sites[i].hi {
		s.steps--
		if pods == 0 && s.covered(0, 0) {
			s.visit(i + 1)
		}
		return
	}
	room -= s.p.lots[l].pods
	for n := min(pods, s.p.lots[l].pods); n >= max(0, pods-room) && s.steps > 0; n-- {
		mark := len(s.log)
		s.do(move{site: i, lot: l, n: n})
		s.share(i, l+1, room, pods-n)
		s.undo(mark)
	}
}
