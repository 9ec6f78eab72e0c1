package topology

import (
	"slices"
	"sort"
)

// cost is what a placement is judged by, compared entry by entry: the units touched at each level, widest first; the
// GPUs that were free in the touched domains; the empty nodes opened (R13).
type cost [MaxLevels + 2]int

const (
	costFree   = MaxLevels
	costOpened = MaxLevels + 1
)

func (c *cost) less(o *cost) bool { return slices.Compare(c[:], o[:]) < 0 }

// draft is a partial placement of a problem. Every change is logged and can be undone.
type draft struct {
	p       *problem
	rest    []int // pieces left, by size
	left    int   // pods of the pieces left
	took    []int // pods, by bin
	put     []int // pieces, by candidate and size
	visits  []int // reasons why a candidate counts as touched: pods on it, and 1 if it must hold some
	touched [][]int
	pods    []int // pods, by class
	cost    cost
	log     []move
}

// move is a step of a draft: pods that went to a bin, or pieces of a size that were assigned to a candidate.
type move struct{ candidate, bin, size, n int }

func newDraft(p *problem) *draft {
	d := &draft{
		p:       p,
		rest:    slices.Clone(p.counts),
		took:    make([]int, len(p.bins)),
		put:     make([]int, len(p.candidates)*len(p.sizes)),
		visits:  make([]int, len(p.candidates)),
		touched: make([][]int, p.levels),
		pods:    make([]int, p.classes),
	}
	for l := range d.touched {
		d.touched[l] = make([]int, len(p.candidates))
	}
	for i, size := range p.sizes {
		d.left += size * p.counts[i]
	}
	for s := range p.candidates {
		if p.candidates[s].must > 0 {
			d.touch(s, 1)
		}
	}
	return d
}

// touch changes the reasons why a candidate counts as touched, and the cost with the first and the last of them.
func (d *draft) touch(s, n int) {
	before := d.visits[s] > 0
	d.visits[s] += n
	after := d.visits[s] > 0
	if before == after {
		return
	}
	at, by := &d.p.candidates[s], 1
	if before {
		by = -1
	}
	d.cost[costFree] += by * at.domain.free
	for l := range d.p.levels {
		count := &d.touched[l][at.units[l]]
		*count += by
		if *count == max(by, 0) {
			d.cost[l] += by
		}
	}
}

func (d *draft) apply(m move) {
	if m.bin < 0 {
		d.rest[m.size] -= m.n
		d.left -= m.n * d.p.sizes[m.size]
		d.put[m.candidate*len(d.p.sizes)+m.size] += m.n
		return
	}
	bin := &d.p.bins[m.bin]
	d.cost[costOpened] += bin.opens(d.took[m.bin]+m.n) - bin.opens(d.took[m.bin])
	d.took[m.bin] += m.n
	d.pods[bin.class] += m.n
	d.touch(m.candidate, m.n)
}

func (d *draft) do(m move) {
	d.apply(m)
	d.log = append(d.log, m)
}

// undo takes back everything since the log had the given length.
func (d *draft) undo(mark int) {
	for len(d.log) > mark {
		m := d.log[len(d.log)-1]
		d.log = d.log[:len(d.log)-1]
		m.n = -m.n
		d.apply(m)
	}
}

// afford finds by binary search how many more pods of a class can be paid for, up to n.
func (d *draft) afford(class, n int) int {
	if n <= 0 || d.covered(class, n) {
		return n
	}
	return sort.Search(n-1, func(k int) bool { return !d.covered(class, k+1) })
}

// covered says whether n more pods of a class can be paid for.
func (d *draft) covered(class, n int) bool {
	if d.p.purse == nil {
		return true
	}
	d.pods[class] += n
	ok := d.p.purse.Covers(d.pods)
	d.pods[class] -= n
	return ok
}

// fill puts up to want pods on a candidate, on part-used nodes first, and returns how many found room and a payer.
// Filling with less than it returned takes a prefix of the same steps, and so succeeds whole.
func (d *draft) fill(s, want int) int {
	at, placed := &d.p.candidates[s], 0
	for _, opening := range [...]bool{false, true} {
		for l := at.lo; l < at.hi && placed < want; l++ {
			room := d.p.bins[l].used
			if opening {
				room = d.p.bins[l].pods
			}
			n := d.afford(d.p.bins[l].class, min(want-placed, room-d.took[l]))
			if n > 0 {
				d.do(move{candidate: s, bin: l, n: n})
				placed += n
			}
		}
	}
	return placed
}

// fillPieces puts as many of the pieces that are left on a candidate as fit and can be paid for, largest first.
func (d *draft) fillPieces(s int) {
	mark := len(d.log)
	room := d.fill(s, d.left)
	d.undo(mark)
	pods := 0
	for i, size := range d.p.sizes {
		if n := min(d.rest[i], (room-pods)/size); n > 0 {
			d.do(move{candidate: s, bin: -1, size: i, n: n})
			pods += n * size
		}
	}
	d.fill(s, pods)
}
