package book

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// crowd is those of the gangs that wait whom the same would help: if there is too little of it for one of them, there
// is for all.
type crowd struct {
	crowdKey
	payers, dry []string
	line        line
	// next is the first of them that has not been looked at since what helps them last improved, at the epoch seen.
	next int
	seen int64
}

// crowdKey is what sets crowds apart.
type crowdKey struct {
	flavor string
	helps  help
	need   need
	usable // of a crowd that room helps
	// own is the Run for which room is kept beside, which is a crowd of its own.
	own types.UID
	// Of a crowd that money helps: whom it may ask, who of those is short of GPU-hours, whether nothing but an edit or a
	// window makes them pay, and whether room where they pay would help as well, or nodes there that accept its pods.
	payers, dry       string
	closed, elsewhere bool
	rank              ranking
}

// ranking sets those apart from whom money is not kept alike: who names a PriorityClass may come before the first in
// its owner's line (R44).
type ranking struct {
	class string
	owner rqv1.Owner // of one that names a class
}

func (g *gang) ranking() ranking {
	if class := g.run.Spec.PriorityClassName; class != "" {
		return ranking{class, g.run.Spec.Owner}
	}
	return ranking{}
}

// help is what could end a gang's refusal.
type help int

const (
	nothing  help = iota
	byRoom        // where there is as much as it needs
	byChange      // of what is free, whatever it needs
	byNodes
	byMoney
)

// need is the room that a gang lacks: a number of blocks.
type need struct {
	block  topology.Block
	blocks int
}

// need returns the room that a gang lacks which has a shape, as far as it can be told without a plan.
func (g *gang) need() need {
	least := g.narrowest()
	n := need{topology.Block{Pods: 1, GPUsPerPod: g.demand.GPUsPerPod}, g.missing()}
	switch {
	case g.started() && g.growing() > 0:
		n.blocks = 1 // ranks that it has lost are placed before those by which it grows
	case g.started() || g.active.assigned+g.spares.assigned > 0:
	case least.OneDomain:
		n.block.Pods, n.blocks = least.Pods()+least.Spares(), 1
	case least.Confined:
		n.block.Pods, n.blocks = least.PodsPerGroup+least.SparesPerGroup, least.Groups
	}
	return n
}

// ownRoom reports whether a gang has room beside what is free.
func (g *gang) ownRoom() bool {
	return g.room.gpus > 0 || len(g.vacant) > 0 || g.keepsRoom() ||
		!g.started() && g.active.assigned+g.spares.assigned > 0
}

// crowdOf returns the crowd that a gang belongs to.
func crowdOf(g *gang) crowdKey {
	r := g.refusal
	key := crowdKey{flavor: g.run.Spec.Resources.GPUType}
	switch {
	case r == nil:
	case r.NeedsNodes():
		key.helps = byNodes
	case r.Reason == plan.NotYet:
		key.helps = byChange
	case r.AboutRoom() && !r.Elsewhere:
		key.helps = byRoom
	case r.AboutMoney(), r.Elsewhere:
		key.helps, key.elsewhere = byMoney, r.Elsewhere
		key.closed = r.Reason == plan.WindowClosed || r.Reason == plan.NoBudget
		key.rank = g.ranking()
		key.payers, key.dry = strings.Join(r.Payers, "/"), strings.Join(r.Dry, "/")
	}
	if g.shape == nil {
		key.need = g.need()
	}
	if g.ownRoom() {
		key.own = g.run.UID
	} else if key.helps == byRoom && g.shape == nil && !g.started() {
		key.usable = g.usableBy()
	}
	return key
}

// join has a gang be in the crowd that it belongs to.
func (w *waitlist) join(g *gang) {
	key := crowdOf(g)
	if c := g.filed.crowd; c != nil && c.crowdKey == key {
		return
	}
	w.leave(g)
	c := w.crowds[key]
	if c == nil {
		c = &crowd{crowdKey: key}
		if g.refusal != nil {
			c.payers, c.dry = g.refusal.Payers, g.refusal.Dry
		}
		w.crowds[key] = c
	}
	g.filed.crowd = c
	c.next = min(c.next, c.line.add(g))
}

// leave has a gang be in no crowd.
func (w *waitlist) leave(g *gang) {
	c := g.filed.crowd
	if c == nil {
		return
	}
	if at := c.line.before(g); at < c.next {
		c.next--
	}
	c.line.remove(g)
	if len(c.line) == 0 {
		delete(w.crowds, c.crowdKey)
	}
	g.filed.crowd = nil
}

// lookAgain has a gang be looked at that was woken and not planned.
func (w *waitlist) lookAgain(g *gang) {
	if c := g.filed.crowd; c != nil {
		c.next = min(c.next, c.line.before(g))
	}
	w.stirred = true
}

// news returns when what helps a crowd last improved.
func (w *waitlist) news(c *crowd) int64 {
	switch c.helps {
	case byRoom, byChange:
		return w.room[c.flavor]
	case byNodes:
		return w.nodes[c.flavor]
	case byMoney:
		news := w.solvency(c.closed, c.payers, c.dry)
		if c.elsewhere {
			news = max(news, w.room[c.flavor])
		}
		return news
	}
	return 0
}

// solvency returns when some Budgets may last have come to pay for more, of which those that are dry were short of
// GPU-hours. No Lease that ends opens a window, or has anybody pay who does not.
func (w *waitlist) solvency(closed bool, payers, dry []string) int64 {
	news := w.payers
	for _, name := range payers {
		news = max(news, w.edited[name])
		if !closed {
			news = max(news, w.budget[name], w.eases[name])
		}
	}
	for _, name := range dry {
		news = max(news, w.hours[name])
	}
	return news
}
