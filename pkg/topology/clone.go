package topology

import "maps"

// Clone returns a fleet that is as this one is, and changes by itself from then on. It takes one look at each node.
func (f *Fleet) Clone() *Fleet {
	out := *f
	out.resources, out.outages = maps.Clone(f.resources), maps.Clone(f.outages)
	out.nodes = make(map[string]*node, len(f.nodes))
	out.flavors = make(map[string]*flavorNodes, len(f.flavors))
	out.sets = make(map[string]*labelSet, len(f.sets))
	c := cloning{nodes: make(map[*node]*node, len(f.nodes)), sets: make(map[*labelSet]*labelSet, len(f.sets))}
	for key, set := range f.sets {
		twin := *set
		out.sets[key], c.sets[set] = &twin, &twin
	}
	c.copyNodes(f.nodes, out.nodes)
	for name, s := range f.flavors {
		out.flavors[name] = c.flavor(s)
	}
	return &out
}

// cloning is what the nodes and label sets of a fleet are in its clone.
type cloning struct {
	nodes map[*node]*node
	sets  map[*labelSet]*labelSet
}

// copyNodes copies nodes, with what is held of them, in two pieces of memory: there are thousands.
func (c *cloning) copyNodes(from, to map[string]*node) {
	amounts := 0
	for _, n := range from {
		amounts += len(n.burden)
	}
	twins, burdens := make([]node, 0, len(from)), make([]int64, 0, amounts)
	for name, n := range from {
		twins = append(twins, *n)
		twin := &twins[len(twins)-1]
		begin := len(burdens)
		burdens = append(burdens, n.burden...)
		twin.burden = burdens[begin:len(burdens):len(burdens)]
		to[name], c.nodes[n] = twin, twin
	}
}

func (c *cloning) flavor(s *flavorNodes) *flavorNodes {
	out := &flavorNodes{name: s.name, free: s.free, domains: make([]*fabricDomain, len(s.domains))}
	for i, b := range s.domains {
		twin := *b
		twin.of, twin.nodes, twin.pools = out, c.list(b.nodes), make([]*pool, len(b.pools))
		twin.sizes = append([]int(nil), b.sizes...)
		for _, n := range twin.nodes {
			n.domain = &twin
		}
		for j, p := range b.pools {
			twin.pools[j] = c.pool(p, &twin)
		}
		out.domains[i] = &twin
	}
	return out
}

func (c *cloning) pool(p *pool, of *fabricDomain) *pool {
	out := *p
	out.domain, out.set = of, c.sets[p.set]
	out.used, out.empty = make(freeList, len(p.used)), make(freeList, len(p.empty))
	for _, lists := range [...][2]freeList{{out.used, p.used}, {out.empty, p.empty}} {
		for free, nodes := range lists[1] {
			lists[0][free] = c.list(nodes)
			for _, n := range lists[0][free] {
				n.pool = &out
			}
		}
	}
	return &out
}

func (c *cloning) list(nodes []*node) []*node {
	if len(nodes) == 0 {
		return nil
	}
	out := make([]*node, len(nodes))
	for i, n := range nodes {
		out[i] = c.nodes[n]
	}
	return out
}
