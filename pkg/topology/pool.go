package topology

import (
	"cmp"
	"slices"
	"strings"
)

// flavorNodes is all nodes of one flavor.
type flavorNodes struct {
	name    string
	free    int             // GPUs free on schedulable nodes
	domains []*fabricDomain // by path
	whole   *Blocks         // what there is while nobody holds any; nil until it is asked for
	unheld  *Fleet          // the same, node by node; nil until it is asked for
}

// fabricDomain is the nodes of one flavor in one fabric domain.
type fabricDomain struct {
	path   string
	values []string // of the levels down to the fabric level
	of     *flavorNodes
	nodes  []*node // by order, the cordoned ones too
	pools  []*pool // by label set
	sizes  []int   // how many nodes have so many allocatable GPUs
	free   int     // GPUs free on schedulable nodes
}

// labelSet is one combination of the values of the selector keys.
type labelSet struct {
	key    string
	labels map[string]string
	pools  int // how many pools share it
	class  int // the payer class in the Pack numbered pack
	pack   uint64
}

// pool is the schedulable nodes of a domain that have the same label set.
type pool struct {
	domain *fabricDomain
	set    *labelSet
	used   freeList // nodes that hold something
	empty  freeList // nodes that hold nothing
	free   int      // GPUs
	nodes  int
}

// freeList lists nodes by how many GPUs they have free; nodes with as many are listed by order.
type freeList [][]*node

func byOrder(a, b *node) int { return cmp.Compare(a.order, b.order) }

func (s *freeList) insert(n *node, free int) {
	for len(*s) <= free {
		*s = append(*s, nil)
	}
	list := (*s)[free]
	i, _ := slices.BinarySearchFunc(list, n, byOrder)
	(*s)[free] = slices.Insert(list, i, n)
}

func (s freeList) remove(n *node, free int) {
	i, _ := slices.BinarySearchFunc(s[free], n, byOrder)
	s[free] = slices.Delete(s[free], i, i+1)
}

func (p *pool) freeList(n *node) *freeList {
	if n.held > 0 {
		return &p.used
	}
	return &p.empty
}

func (p *pool) insert(n *node) {
	p.freeList(n).insert(n, n.free())
	p.nodes++
	p.count(n.free())
}

func (p *pool) remove(n *node) {
	p.freeList(n).remove(n, n.free())
	p.nodes--
	p.count(-n.free())
}

// count adds GPUs to what is free in the pool and in everything that contains it.
func (p *pool) count(gpus int) {
	p.free += gpus
	p.domain.free += gpus
	p.domain.of.free += gpus
}

func (b *fabricDomain) insert(n *node) {
	i, _ := slices.BinarySearchFunc(b.nodes, n, byOrder)
	b.nodes = slices.Insert(b.nodes, i, n)
	b.sizes = tally(b.sizes, n.GPUs, 1)
}

func (b *fabricDomain) remove(n *node) {
	i, _ := slices.BinarySearchFunc(b.nodes, n, byOrder)
	b.nodes = slices.Delete(b.nodes, i, i+1)
	b.sizes[n.GPUs]--
}

// podsIfEmpty is how many pods of the given GPUs the domain's nodes could ever hold.
func (b *fabricDomain) podsIfEmpty(gpus int) int {
	pods := 0
	for size := gpus; size < len(b.sizes); size++ {
		pods += b.sizes[size] * (size / gpus)
	}
	return pods
}

// within returns the part of a flavor that lies in some domains, which shares everything with it; nil when none of it
// does.
func (s *flavorNodes) within(domains map[string]bool) *flavorNodes {
	if s == nil || domains == nil {
		return s
	}
	part := &flavorNodes{name: s.name}
	for _, b := range s.domains {
		if domains[b.path] {
			part.domains = append(part.domains, b)
			part.free += b.free
		}
	}
	if len(part.domains) == 0 {
		return nil
	}
	return part
}

func (s *flavorNodes) find(path string) (int, bool) {
	return slices.BinarySearchFunc(s.domains, path,
		func(b *fabricDomain, path string) int { return cmp.Compare(b.path, path) })
}

func (f *Fleet) domainFor(n *node, values []string) *fabricDomain {
	s := f.flavors[n.Flavor]
	if s == nil {
		s = &flavorNodes{name: n.Flavor}
		f.flavors[n.Flavor] = s
	}
	path := strings.Join(values, "/")
	i, ok := s.find(path)
	if !ok {
		s.domains = slices.Insert(s.domains, i, &fabricDomain{path: path, values: values, of: s})
	}
	return s.domains[i]
}

func (f *Fleet) poolFor(n *node) *pool {
	set := f.labelSet(n.Labels)
	b := n.domain
	i, ok := b.findPool(set)
	if !ok {
		set.pools++
		b.pools = slices.Insert(b.pools, i, &pool{domain: b, set: set})
	}
	return b.pools[i]
}

func (b *fabricDomain) findPool(set *labelSet) (int, bool) {
	return slices.BinarySearchFunc(b.pools, set.key, func(p *pool, key string) int { return cmp.Compare(p.set.key, key) })
}

// labelSet returns the one set that nodes with the same values of the selector keys share.
func (f *Fleet) labelSet(labels map[string]string) *labelSet {
	var key strings.Builder
	for _, k := range f.keys {
		if value, ok := labels[k]; ok {
			key.WriteString("=" + value)
		}
		key.WriteByte(';')
	}
	set := f.sets[key.String()]
	if set == nil {
		set = &labelSet{key: key.String(), labels: map[string]string{}}
		for _, k := range f.keys {
			if value, ok := labels[k]; ok {
				set.labels[k] = value
			}
		}
		f.sets[set.key] = set
	}
	return set
}
