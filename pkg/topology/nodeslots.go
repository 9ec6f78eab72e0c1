package topology

import "slices"

// nodeSlot is one pod's place on a node.
type nodeSlot struct {
	node  *node
	class int
}

// pickNodes picks nodes of one class for pods: the part-used ones first, fullest first; then empty ones, largest first
// so that few are opened, and for the last of them the smallest that holds the rest. Nodes that are set aside are not
// used.
func (f *Fleet) pickNodes(out []nodeSlot, r *Request, p *problem, b *fabricDomain, class, pods int,
	aside map[*node]bool) []nodeSlot {
	if pods == 0 {
		return out
	}
	out = slices.Grow(out, pods)
	fill := func(n *node, each int) {
		for range min(each, pods) {
			out = append(out, nodeSlot{node: n, class: n.pool.set.class})
		}
		pods -= min(each, pods)
	}
	used := f.usableNodes(r, p, b, class, aside, func(p *pool) freeList { return p.used })
	for free := p.gpus; free < len(used) && pods > 0; free++ {
		for i := 0; i < len(used[free]) && pods > 0; i++ {
			fill(used[free][i], free/p.gpus)
		}
	}
	if pods == 0 {
		return out
	}
	empty := f.usableNodes(r, p, b, class, aside, func(p *pool) freeList { return p.empty })
	for free := len(empty) - 1; free >= p.gpus; free-- {
		for len(empty[free]) > 0 && pods > free/p.gpus {
			fill(empty[free][0], free/p.gpus)
			empty[free] = empty[free][1:]
		}
		if len(empty[free]) > 0 {
			break // one node more is enough
		}
	}
	for free := p.gpus; free < len(empty) && pods > 0; free++ {
		if len(empty[free]) > 0 && free/p.gpus >= pods {
			fill(empty[free][0], free/p.gpus)
		}
	}
	return out
}

// usableNodes lists a domain's nodes of one class that this request may use, but for those set aside, by free GPUs and
// then by order.
func (f *Fleet) usableNodes(r *Request, p *problem, b *fabricDomain, class int, aside map[*node]bool,
	of func(*pool) freeList) freeList {
	var all freeList
	from := 0
	for _, pool := range b.pools {
		if p.class(f, pool.set) != class {
			continue
		}
		from++
		for free, nodes := range of(pool) {
			for len(all) <= free {
				all = append(all, nil)
			}
			if free >= p.gpus {
				all[free] = r.admit(all[free], nodes, aside)
			}
		}
	}
	if from > 1 {
		for _, nodes := range all {
			slices.SortFunc(nodes, byOrder)
		}
	}
	return all
}

// admit adds the nodes that the request may use; it shares the list when that is all of them and the first.
func (r *Request) admit(to, nodes []*node, aside map[*node]bool) []*node {
	if to == nil && r.Excluded == nil && len(aside) == 0 {
		return nodes[:len(nodes):len(nodes)]
	}
	for _, n := range nodes {
		if (r.Excluded == nil || !r.Excluded(n.Name)) && !aside[n] {
			to = append(to, n)
		}
	}
	return to
}
