package book

import (
	"container/heap"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// round is one look at those who wait, with what is free, less what those who are woken might take of it.
type round struct {
	w       *waitlist
	rooms   map[string]*topology.Blocks
	usable  map[usableKey]*topology.Blocks // what is left for those who may not use all nodes
	asked   int                            // of how many nodes it has been found out who may use them
	purse   purse
	keeps   map[keepsKey]kept
	crowds  crowds // those of whom somebody is to be looked at
	counted int    // of those who are woken
}

// purse is what Budgets could still pay for.
type purse struct {
	accounts *budget.Accounts
	left     map[purseKey]int
}

type purseKey struct{ budget, flavor string }

type keepsKey struct {
	purseKey
	rank ranking
}

// wakeNext wakes refused gangs, in the order of their places, whom something may help that has improved since they
// were last tried, and no more of them than what there is could serve: the rest are looked at again when those have
// been planned.
func (w *waitlist) wakeNext() {
	r := round{w: w, rooms: map[string]*topology.Blocks{}, usable: map[usableKey]*topology.Blocks{},
		purse: purse{w.accounts, map[purseKey]int{}}, keeps: map[keepsKey]kept{}}
	for len(w.roused) > 0 && !w.roused[0].woken && !w.roused[0].absent {
		w.roused = w.roused[1:]
	}
	for _, c := range w.crowds {
		if news := w.news(c); news > c.seen {
			c.seen, c.next = news, 0
		}
		if c.next < len(c.line) {
			r.crowds = append(r.crowds, c)
		}
	}
	w.owed = false
	heap.Init(&r.crowds)
	for len(r.crowds) > 0 {
		c := r.crowds[0]
		served := r.serve(c)
		if served {
			c.next++
		}
		if !served || c.next == len(c.line) {
			heap.Pop(&r.crowds)
		} else {
			heap.Fix(&r.crowds, 0)
		}
	}
}

// crowds are a heap: the one is first whose next gang comes first.
type crowds []*crowd

func (c crowds) Len() int           { return len(c) }
func (c crowds) Less(i, j int) bool { return byPlace(c[i].line[c[i].next], c[j].line[c[j].next]) < 0 }
func (c crowds) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *crowds) Push(x any)        { *c = append(*c, x.(*crowd)) }
func (c *crowds) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// serve looks at the next gang of a crowd, and wakes it if what helps it may be enough. It reports false if that is too
// little, with which it is too little for the rest of them.
func (r *round) serve(c *crowd) bool {
	w, g := r.w, c.line[c.next]
	w.looks++
	for ; r.counted < len(w.roused) && byPlace(w.roused[r.counted], g) < 0; r.counted++ {
		r.count(w.roused[r.counted])
	}
	switch {
	case g.woken, g.tried >= c.seen, g.shape == nil && !g.complete() && !g.unpaid:
		return true // the arrival of its last pod wakes the last of these
	case !r.suffices(g, c):
		w.owed = w.owed || c.helps == byMoney
		return false
	}
	if w.wake(g); !g.woken && r.pays(g) {
		r.purse.take(g) // it is not planned now, but asks who pays
	}
	return true
}

// suffices reports whether what is left may be enough for a gang.
func (r *round) suffices(g *gang, c *crowd) bool {
	switch c.helps {
	case nothing:
		return false
	case byRoom:
		left := r.room(c.flavor)
		if c.own != "" {
			return g.needs() <= left.Free()+g.room.gpus
		}
		if !left.Fit(c.need.block, c.need.blocks) {
			return false
		}
		usable := r.usableTo(g, c)
		return usable == nil || usable.Fit(c.need.block, c.need.blocks)
	case byMoney:
		return !r.pays(g) || r.w.payers > g.tried || r.affords(g, c)
	}
	return true
}

// affords reports whether the Budgets that a gang may ask could pay for what it needs, beside what they keep for
// others.
func (r *round) affords(g *gang, c *crowd) bool {
	left := r.purse.has(g) - r.w.pledged(c, g) - g.missing()*g.demand.GPUsPerPod
	return left >= 0 && (r.w.debts.keepsNothing(g) || left >= r.kept(g, c))
}

// kept returns how much of that they keep at least. It is the same for all who come after those for whom it is kept.
func (r *round) kept(g *gang, c *crowd) int {
	of := keepsKey{purseKey{c.crowdKey.payers, c.flavor}, c.rank}
	if k, known := r.keeps[of]; known && !g.started() && k.to.compare(g.place) < 0 {
		return k.gpus
	}
	k := r.w.debts.kept(g)
	if !g.started() && k.to.compare(g.place) < 0 {
		r.keeps[of] = k
	}
	return k.gpus
}

// pays reports whether a gang needs more money than is kept for it.
func (r *round) pays(g *gang) bool {
	return g.refusal != nil && g.refusal.AboutMoney() && !g.keepsRoom() && !g.opportunistic()
}

// count takes what a gang that is woken might take, if it has been refused before.
func (r *round) count(g *gang) {
	if !g.woken || !g.filed.listed {
		return
	}
	if c := g.filed.crowd; g.shape == nil && !g.unpaid && c.own == "" {
		r.room(c.flavor).Take(c.need.block, c.need.blocks)
		if usable := r.usableTo(g, c); usable != nil {
			usable.Take(c.need.block, c.need.blocks)
		}
	} else if g.shape == nil && !g.unpaid {
		r.room(c.flavor).Take(topology.Block{Pods: 1, GPUsPerPod: g.demand.GPUsPerPod}, g.needs()/g.demand.GPUsPerPod)
	}
	if r.pays(g) {
		r.purse.take(g)
	}
}

// room returns what is left of a flavor.
func (r *round) room(flavor string) *topology.Blocks {
	if r.rooms[flavor] == nil {
		r.rooms[flavor] = r.w.fleet.Blocks(flavor)
	}
	return r.rooms[flavor]
}

// has returns how many GPUs the Budgets that a gang may ask could pay for.
func (p *purse) has(g *gang) (gpus int) {
	for _, name := range g.refusal.Payers {
		k := purseKey{name, g.full.Flavor}
		if _, known := p.left[k]; !known {
			p.left[k] = p.accounts.Headroom(k.budget, k.flavor, nil)
		}
		gpus += p.left[k]
	}
	return gpus
}

// take takes what a gang needs from the Budgets that it may ask, if they have so much.
func (p *purse) take(g *gang) {
	need := g.missing() * g.demand.GPUsPerPod
	if p.has(g) < need {
		return
	}
	for _, name := range g.refusal.Payers {
		k := purseKey{name, g.full.Flavor}
		n := min(need, p.left[k])
		p.left[k] -= n
		need -= n
	}
}
