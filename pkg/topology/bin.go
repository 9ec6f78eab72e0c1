package topology

import (
	"cmp"
	"slices"
)

// bin is the nodes of a candidate domain that have one payer class: pods are packed into bins.
type bin struct {
	class int
	pods  int    // that fit
	used  int    // of them, on nodes that already hold something
	empty []tier // nodes that hold nothing, largest first
}

// tier counts empty nodes that fit the same number of pods.
type tier struct{ pods, nodes int }

// opens is how many empty nodes so many pods open at least.
func (l *bin) opens(pods int) int {
	opened, left := 0, pods-l.used
	for _, t := range l.empty {
		if left <= 0 {
			break
		}
		n := min(t.nodes, (left+t.pods-1)/t.pods)
		opened += n
		left -= n * t.pods
	}
	return opened
}

// add puts the nodes of a pool into the bin.
func (l *bin) add(p *pool, r *Request) {
	for free := r.GPUsPerPod; free < len(p.used); free++ {
		if !r.choosy() {
			l.used += len(p.used[free]) * (free / r.GPUsPerPod)
			continue
		}
		for _, n := range p.used[free] {
			l.used += r.room(n)
		}
	}
	l.pods = l.used
	for free := r.GPUsPerPod; free < len(p.empty); free++ {
		if !r.choosy() {
			l.addTier(tier{pods: free / r.GPUsPerPod, nodes: len(p.empty[free])})
			continue
		}
		for _, n := range p.empty[free] {
			l.addTier(tier{pods: r.room(n), nodes: 1})
		}
	}
	for _, t := range l.empty {
		l.pods += t.pods * t.nodes
	}
}

func (l *bin) addTier(t tier) {
	if t.pods == 0 || t.nodes == 0 {
		return
	}
	i, ok := slices.BinarySearchFunc(l.empty, t, func(a, b tier) int { return cmp.Compare(b.pods, a.pods) })
	if ok {
		l.empty[i].nodes += t.nodes
	} else {
		l.empty = slices.Insert(l.empty, i, t)
	}
}
