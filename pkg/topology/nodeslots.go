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

// usableNodes lists a domain's nodes of one class that this request may use, but for those set aside, by the GPUs that
// it could use of them and then by order.
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
			switch {
			case free < p.gpus:
			case all[free] == nil && !r.choosy() && len(aside) == 0:
				all[free] = nodes[:len(nodes):len(nodes)]
			default:
				r.admit(all, nodes, aside)
			}
		}
	}
	if from > 1 || r.choosy() {
		for _, nodes := range all {
			slices.SortFunc(nodes, byOrder)
		}
	}
	return all
}

// admit adds the nodes that the request may use. One that does not do for as many pods as its GPUs would counts as one
// with fewer of them free.
func (r *Request) admit(to freeList, nodes []*node, aside map[*node]bool) {
	for _, n := range nodes {
		free := n.free()
		switch pods := r.room(n); {
		case pods == 0 || aside[n]:
			continue
		case pods < free/r.GPUsPerPod:
			free = pods * r.GPUsPerPod
		}
		to[free] = append(to[free], n)
	}
}
