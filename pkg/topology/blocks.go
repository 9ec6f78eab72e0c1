package topology

import (
	"iter"
	"slices"
)

// Block is so many pods that lie together in one fabric domain.
type Block struct{ Pods, GPUsPerPod int }

// Blocks is what is free of one flavor, as pods could take it: what it does not hold is placed by no plan, though
// payers and other rules may keep a plan from what it does hold. Room can be taken from it, and the fleet stays as it
// is.
type Blocks struct {
	domains [][]int // for each fabric domain, how many nodes have so many GPUs free
	free    int     // GPUs
}

// Blocks returns what is free of a flavor on schedulable nodes.
func (f *Fleet) Blocks(flavor string) *Blocks {
	s, out := f.flavors[flavor], &Blocks{}
	if s == nil {
		return out
	}
	out.free = s.free
	for _, b := range s.domains {
		var nodes []int
		for _, p := range b.pools {
			nodes = p.used.count(p.empty.count(nodes))
		}
		if len(nodes) > 0 {
			out.domains = append(out.domains, nodes)
		}
	}
	return out
}

// BlocksFor returns of that what pods of some GPUs may use that may be on some nodes alone, if any are given, and ask
// for more than GPUs, if they do. It goes through those nodes, or through those that have GPUs free, whichever are
// fewer.
func (f *Fleet) BlocksFor(flavor string, usable map[string]bool, beside *Amounts, gpusPerPod int) *Blocks {
	s, out := f.flavors[flavor], &Blocks{}
	if s == nil {
		return out
	}
	asks, in := f.numbered(beside), map[*fabricDomain][]int{}
	count := func(b *fabricDomain, n *node) {
		if pods := f.roomBeside(n, asks, n.free()/gpusPerPod); pods > 0 {
			in[b] = tally(in[b], pods*gpusPerPod, 1)
			out.free += pods * gpusPerPod
		}
	}
	if usable != nil && len(usable) < s.free/gpusPerPod {
		for name := range usable {
			if n := f.nodes[name]; n != nil && n.pool != nil && n.domain.of == s {
				count(n.domain, n)
			}
		}
	} else {
		for _, b := range s.domains {
			for n := range b.having(gpusPerPod) {
				if usable == nil || usable[n.Name] {
					count(b, n)
				}
			}
		}
	}
	for _, b := range s.domains {
		if len(in[b]) > 0 {
			out.domains = append(out.domains, in[b])
		}
	}
	return out
}

// having goes through the schedulable nodes of a domain that have so many GPUs free.
func (b *fabricDomain) having(gpus int) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, p := range b.pools {
			for _, list := range [...]freeList{p.used, p.empty} {
				for free := gpus; free < len(list); free++ {
					for _, n := range list[free] {
						if !yield(n) {
							return
						}
					}
				}
			}
		}
	}
}

// nothing is what there is of a flavor that has no nodes.
var nothing = &Blocks{}

// Whole returns what there is of a flavor while nobody holds any of it, cordoned nodes included. It is the same until
// nodes change, and no room may be taken from it.
func (f *Fleet) Whole(flavor string) *Blocks {
	s := f.flavors[flavor]
	if s == nil {
		return nothing
	}
	if s.whole == nil {
		s.whole = &Blocks{}
		for _, b := range s.domains {
			for gpus, n := range b.sizes {
				s.whole.free += gpus * n
			}
			s.whole.domains = append(s.whole.domains, slices.Clone(b.sizes))
		}
	}
	return s.whole
}

// Unheld returns the nodes of a flavor as they are while nobody holds anything of them, cordoned ones and those with an
// outage to come included. It is the same until nodes change, and nothing may be taken of it.
func (f *Fleet) Unheld(flavor string) *Fleet {
	s := f.flavors[flavor]
	if s == nil {
		return NewFleet(f.levels, f.levels[f.fabric])
	}
	if s.unheld == nil {
		s.unheld = NewFleet(f.levels, f.levels[f.fabric])
		s.unheld.SetSelectorKeys(f.keys)
		for _, b := range s.domains {
			for _, n := range b.nodes {
				s.unheld.SetNode(Node{Name: n.Name, Labels: n.Labels, Flavor: n.Flavor, GPUs: n.GPUs})
			}
		}
	}
	return s.unheld
}

// NewBlocks returns what is free in fabric domains, each of which tells how many of its nodes have so many GPUs free.
func NewBlocks(domains ...map[int]int) *Blocks {
	out := &Blocks{}
	for _, of := range domains {
		var nodes []int
		for gpus, n := range of {
			nodes = tally(nodes, gpus, n)
			out.free += gpus * n
		}
		out.domains = append(out.domains, nodes)
	}
	return out
}

// Largest is the most GPUs that are left on one node.
func (b *Blocks) Largest() int {
	largest := 0
	for _, nodes := range b.domains {
		for free := len(nodes) - 1; free > largest; free-- {
			if nodes[free] > 0 {
				largest = free
			}
		}
	}
	return largest
}

// Uniform returns how many GPUs are left on each node, and whether it is as many on all.
func (b *Blocks) Uniform() (gpus int, same bool) {
	for _, nodes := range b.domains {
		for free, n := range nodes {
			if n > 0 && free > 0 && gpus > 0 && free != gpus {
				return 0, false
			} else if n > 0 && free > 0 {
				gpus = free
			}
		}
	}
	return gpus, gpus > 0
}

// count adds to how many nodes have so many GPUs free.
func (s freeList) count(nodes []int) []int {
	for free, list := range s {
		if free > 0 && len(list) > 0 {
			nodes = tally(nodes, free, len(list))
		}
	}
	return nodes
}

// tally adds so many nodes of some GPUs to how many there are of each number.
func tally(nodes []int, gpus, n int) []int {
	for len(nodes) <= gpus {
		nodes = append(nodes, 0)
	}
	nodes[gpus] += n
	return nodes
}

// Free is the number of GPUs that are left, wherever they are.
func (b *Blocks) Free() int { return b.free }

// Fit reports whether there is room for a number of blocks at once.
func (b *Blocks) Fit(block Block, n int) bool {
	for i := 0; n > 0 && i < len(b.domains); i++ {
		n -= b.in(i, block)
	}
	return n <= 0
}

// Take takes the room of a number of blocks, as far as there is any, each domain that holds the fewest first: larger
// blocks may still fit the others.
func (b *Blocks) Take(block Block, n int) {
	for n > 0 {
		best, fewest := -1, 0
		for i := range b.domains {
			if holds := b.in(i, block); holds > 0 && (best < 0 || holds < fewest) {
				best, fewest = i, holds
			}
		}
		if best < 0 {
			return
		}
		took := min(n, fewest)
		b.takeIn(best, block.GPUsPerPod, took*block.Pods)
		n -= took
	}
}

// in is how many blocks a domain holds.
func (b *Blocks) in(domain int, block Block) int {
	pods := 0
	for free := block.GPUsPerPod; free < len(b.domains[domain]); free++ {
		pods += b.domains[domain][free] * (free / block.GPUsPerPod)
	}
	return pods / block.Pods
}

// takeIn has pods take the fullest nodes of a domain that have room for them.
func (b *Blocks) takeIn(domain, gpus, pods int) {
	b.free -= pods * gpus
	nodes := b.domains[domain]
	for free := gpus; pods > 0 && free < len(nodes); free++ {
		holds := free / gpus
		whole := min(nodes[free], pods/holds)
		nodes[free] -= whole
		nodes[free-holds*gpus] += whole
		pods -= whole * holds
		if pods > 0 && pods < holds && nodes[free] > 0 {
			nodes[free]--
			nodes[free-pods*gpus]++
			pods = 0
		}
	}
}
