package book

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// waitlist holds the refused gangs, oldest Run first, and when the things that they wait for last improved. A refused
// gang costs nothing until something improves that could change its fate.
type waitlist struct {
	args     *config.Args
	fleet    *topology.Fleet
	accounts *budget.Accounts
	mail     *mailbox

	gangs []*gang
	// epoch counts improvements. It stands beside what the last one improved: the GPUs that are free and the nodes that
	// there are, by flavor, and what can be paid, by Budget.
	epoch       int64
	room, nodes map[string]int64
	budget      map[string]int64
	payers      int64 // when any Budget changed, and with it perhaps who may ask whom
	// left tells by node when a pod last left it that was more than a plan, neither a shard's nor a spare's.
	left    map[string]departed
	plans   int64 // counts what has been planned
	stirred bool  // something has improved since the gangs were last looked at
}

// purse is what Budgets could still pay for, less what the gangs that are woken might take of it.
type purse struct {
	accounts *budget.Accounts
	payers   int64 // when any Budget changed
	left     map[purseKey]int
}

type purseKey struct{ budget, flavor string }

// take takes what a gang needs from the Budgets that it may ask, and reports whether they could have so much.
func (p purse) take(g *gang, flavor string) bool {
	need, have := g.missing()*g.demand.GPUsPerPod, 0
	payers := g.refusal.Payers
	if p.payers > g.tried {
		return true // others may have come to be asked
	}
	for _, name := range payers {
		k := purseKey{name, flavor}
		if _, known := p.left[k]; !known {
			p.left[k] = p.accounts.Headroom(name, flavor)
		}
		have += p.left[k]
	}
	if have < need {
		return false
	}
	for _, name := range payers {
		k := purseKey{name, flavor}
		n := min(need, p.left[k])
		p.left[k] -= n
		need -= n
	}
	return true
}

func (w *waitlist) add(g *gang) {
	if at, found := slices.BinarySearchFunc(w.gangs, g, byAge); !found {
		w.gangs = slices.Insert(w.gangs, at, g)
	}
}

func (w *waitlist) remove(g *gang) {
	if g.run == nil {
		return
	}
	if at, found := slices.BinarySearchFunc(w.gangs, g, byAge); found {
		w.gangs = slices.Delete(w.gangs, at, at+1)
	}
}

// wakeRoom notes that GPUs of a flavor have become free, for the gangs that may fit now.
func (w *waitlist) wakeRoom(flavor string) {
	w.epoch++
	w.room[flavor] = w.epoch
	w.stirred = true
}

// departed is when the last pod that was bound to a node has left it, when the last has that was at the barrier alone,
// and after which plan that one had come.
type departed struct{ bound, gave, came int64 }

// since reports whether a pod has left that was there when a gang was last tried.
func (d departed) since(g *gang) bool {
	return d.bound > g.tried || d.gave > g.tried && d.came < g.plan
}

// noteLeft notes that a pod has left a node, for the gangs that the node turned down.
func (w *waitlist) noteLeft(node string) {
	d := w.left[node]
	d.bound = w.epoch
	w.left[node] = d
}

// noteGiven notes that a pod which has come to the barrier after a plan has given its node back.
func (w *waitlist) noteGiven(node string, came int64) {
	d := w.left[node]
	d.came, d.gave = came, w.epoch
	w.left[node] = d
}

// eased notes that pods hold less beside GPUs of a node of a flavor, for the gangs that were refused for want of it.
func (w *waitlist) eased(flavor string) {
	if slices.ContainsFunc(w.gangs, func(g *gang) bool {
		return g.full.Flavor == flavor && g.refusal != nil && g.refusal.Rejected != nil
	}) {
		w.wakeRoom(flavor)
	}
}

// wakeNodes notes that the nodes of a flavor have changed, also for the gangs that fitted none of them.
func (w *waitlist) wakeNodes(flavor string) {
	w.wakeRoom(flavor)
	w.nodes[flavor] = w.epoch
}

// wakeBudget notes that a Budget may be able to pay for more.
func (w *waitlist) wakeBudget(name string) {
	w.epoch++
	w.budget[name] = w.epoch
	w.stirred = true
}

// wakePayers notes that Budgets have changed, so that anybody may be able to pay for more.
func (w *waitlist) wakePayers() {
	w.epoch++
	w.payers = w.epoch
	w.stirred = true
}

// passOn has a gang that was woken not be planned now, so that what it was woken for is the next one's.
func (w *waitlist) passOn(g *gang) {
	if g.woken {
		g.woken, w.stirred = false, true
	}
}

// richer reports whether any of those who were asked to pay for a gang may be able to pay for more since. No Lease that
// ends opens a window, or has anybody pay who does not.
func (w *waitlist) richer(g *gang) bool {
	if w.payers > g.tried {
		return true
	}
	closed := g.refusal.Reason == plan.WindowClosed || g.refusal.Reason == plan.NoBudget
	return !closed && slices.ContainsFunc(g.refusal.Payers, func(name string) bool { return w.budget[name] > g.tried })
}

// improved reports whether what a gang waits for has improved since it was last tried, and could be enough now.
func (w *waitlist) improved(g *gang, free int) bool {
	flavor := g.run.Spec.Resources.GPUType
	switch g.refusal.Reason {
	case plan.InsufficientGPUs:
		return w.room[flavor] > g.tried && g.needs() <= free
	case plan.NodesRejected, plan.NotYet:
		return w.room[flavor] > g.tried
	}
	if g.refusal.NeedsNodes() {
		return w.nodes[flavor] > g.tried
	}
	return g.refusal.AboutMoney() && (w.richer(g) || g.refusal.Elsewhere && w.room[flavor] > g.tried)
}

// pardon has a gang that is woken be tried again on the nodes that turned it down, if something has changed there
// since. Places that were planned and given back change nothing, nor do pods that have come and left since: two gangs
// that give back to each other what neither can use would wake each other for ever. Nor do shards and spares, which
// make room for each try. Nodes that turned it down for want of GPUs have them as soon as whoever leaves them is gone.
// What else there is comes to light with its retry, which comes the later the more often one was in vain.
func (w *waitlist) pardon(g *gang) {
	all := w.nodes[g.full.Flavor] > g.tried
	before := len(g.check.upTo) + len(g.excluded)
	maps.DeleteFunc(g.check.upTo, func(node string, _ int) bool { return all || w.left[node].since(g) })
	maps.DeleteFunc(g.excluded, func(node, _ string) bool { return all || w.left[node].since(g) })
	if all || len(g.check.upTo)+len(g.excluded) < before {
		g.check.fails = 0
	}
	maps.DeleteFunc(g.excluded, func(_, why string) bool { return strings.Contains(why, w.args.GPUResource) })
}

// wake has a gang planned again: by its leader's scheduling cycle, or, when it has no pods for want of a shape, by the
// Run controller.
func (w *waitlist) wake(g *gang) {
	if g.opportunistic() && g.shape == nil && !g.unpaid {
		return // Fill looks after it
	}
	g.woken = true
	w.pardon(g)
	if g.shape != nil || g.active.present == 0 || g.unpaid {
		g.tried = w.epoch
		g.woken, g.asked = false, true
		if g.run != nil {
			w.mail.reconcile(keyOf(g.run), lane.Begin)
		}
		return
	}
	if lead := g.leader(); lead != nil {
		w.mail.activate(lead.pod)
	}
}

// greet has the gang of a pod planned that has just come. A leader about which the queue has not asked yet comes by
// itself: it would be tried twice.
func (w *waitlist) greet(m *member, asked bool) {
	if g := m.gang; g.leader() == m && !asked && !g.unpaid && !g.opportunistic() {
		g.woken = true
		w.pardon(g)
		return
	}
	w.wake(m.gang)
}

// wakeStirred wakes the gangs that what was improved since they were last looked at may be for, once.
func (w *waitlist) wakeStirred() {
	if w.stirred {
		w.stirred = false
		w.wakeNext()
	}
}

// wakeNext wakes refused gangs, oldest first, for which something has improved since they were last tried, and no more
// of them than the free GPUs could serve: the rest are looked at again when those have been planned.
func (w *waitlist) wakeNext() {
	free := map[string]int{}
	purse := purse{accounts: w.accounts, payers: w.payers, left: map[purseKey]int{}}
	for _, g := range w.gangs {
		if g.shape == nil && !g.complete() && !g.unpaid {
			continue // its last pod's arrival wakes it
		}
		flavor := g.run.Spec.Resources.GPUType
		if _, known := free[flavor]; !known {
			free[flavor] = w.fleet.FreeOf(flavor)
		}
		if !g.woken && (!w.improved(g, free[flavor]+g.room.gpus) || g.refusal.AboutMoney() && !g.keepsRoom() &&
			!g.opportunistic() && !purse.take(g, flavor)) {
			continue
		}
		if g.shape == nil && !g.unpaid { // else it is not planned now, so that nobody would look at the rest
			free[flavor] -= g.needs()
		}
		if !g.woken {
			w.wake(g)
		}
	}
}

// refuse has a gang wait, whose date is to be worked out.
func (w *waitlist) refuse(g *gang, refusal *plan.Refusal) {
	if !g.started() && !g.opportunistic() {
		g.futile.note(g.active.present+g.spares.present-g.standIns, refusal)
	}
	g.refusal, g.seen = refusal, -1
	w.add(g)
	work := lane.Date
	if g.started() {
		work = lane.Cut // it goes on without the ranks that it has lost, or waits
	}
	w.mail.reconcile(keyOf(g.run), work)
}

// proceed lets a gang whose places are free into the queue, and who leads those that have none: they have been held
// back too.
func (w *waitlist) proceed(g *gang) {
	for m := range g.all() {
		if m.stage == assigned && !m.standIn {
			w.mail.activate(m.pod)
		}
	}
	if g.complete() && g.leader() != nil {
		w.wake(g) // a spare that was made meanwhile
	}
}

// gone notes that a pod which gangs wait for holds nothing any more.
func (w *waitlist) gone(h *holding) {
	for _, g := range h.awaitedBy {
		g.awaiting--
		if g.awaiting == 0 && g.run != nil {
			w.proceed(g)
		}
	}
	h.awaitedBy = nil
}

// again has a gang that waits, or has given its places back, planned anew, because what was decided for it cannot be
// carried out as it was.
func (w *waitlist) again(g *gang) {
	if g.complete() && !g.started() && !g.woken && g.leader() != nil {
		w.wake(g)
	}
}

// forgive forgets which nodes stood in the way of a cut once that is long enough ago or the nodes have changed. After
// the last of several attempts it is time alone that counts: nodes may change all the time.
func (v *waitlist) forgive(g *gang, now time.Time) {
	c := &g.check
	changed := c.seen != v.nodes[g.full.Flavor] && !c.rests
	if len(c.shunned) == 0 && !c.rests || !changed && now.Before(c.until) {
		return
	}
	c.shunned, c.mostCut, c.rests, c.until = nil, nil, false, time.Time{}
	if changed {
		c.tries = 0
	}
}
