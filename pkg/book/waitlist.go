package book

import (
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// waitlist holds the refused gangs, in the order of their places, and when the things that they wait for last
// improved. A refused gang costs nothing until something improves that could change its fate.
type waitlist struct {
	args     *config.Args
	fleet    *topology.Fleet
	accounts *budget.Accounts
	mail     *mailbox
	admits   admitting

	debts *debts
	order *order
	money moneyLines
	gangs line
	// The same gangs by what they wait for: crowds by what could help them, lines by flavor and by what is scarce.
	// rejected counts by flavor those that other rules keep from nodes.
	crowds   map[crowdKey]*crowd
	inFlavor map[string]*line
	queues   map[scarce]*queue
	rejected map[string]int
	// roused are those that are woken, and some that were.
	roused line
	// moved counts how often somebody came to a line or left it, up to told when it was last begun to tell all of gangs
	// their places; teller is how many have been looked at since, 0 once all have.
	moved, told int64
	teller      int
	later       earliest // when those are told who had been told too shortly before
	owed        bool     // there was too little money for somebody
	pledges     []pledge // money that is found and not taken yet
	looks       int64    // how often a gang was looked at

	// epoch counts improvements. It stands beside what the last one improved: the GPUs that are free and the nodes that
	// there are, by flavor, and what can be paid, by Budget: because more is left of it, because it pays more or has begun
	// to pay, or because it pays for more GPU-hours.
	epoch                 int64
	room, nodes           map[string]int64
	budget, edited, hours map[string]int64
	eases                 map[string]int64 // when a Budget came to owe less to others
	payers                int64            // when it changed who may ask whom
	funds                 int64            // when a Budget last came to pay otherwise than for what is given back
	// altered is when nodes of a flavor last came, went, or became others in what rules see of several of them.
	altered map[string]int64
	// dating is when something changed on which dates rest, by flavor.
	dating map[string]int64
	// promised is when something else was promised last, by flavor.
	promised map[string]int64
	// left tells by node when a pod last left it that was more than a plan, neither a shard's nor a spare's.
	left    map[string]departed
	plans   int64 // counts what has been planned
	stirred bool  // something has improved since the gangs were last looked at
}

func newWaitlist(args *config.Args, fleet *topology.Fleet, accounts *budget.Accounts, mail *mailbox,
	roster *roster) *waitlist {
	epochs := func() map[string]int64 { return map[string]int64{} }
	order := newOrder(mail, roster)
	return &waitlist{args: args, fleet: fleet, accounts: accounts, mail: mail,
		debts:  newDebts(args, accounts, order),
		order:  order,
		money:  moneyLines{},
		crowds: map[crowdKey]*crowd{}, inFlavor: map[string]*line{}, queues: map[scarce]*queue{}, rejected: map[string]int{},
		room: epochs(), nodes: epochs(), budget: epochs(), edited: epochs(), hours: epochs(), eases: epochs(),
		altered: epochs(), dating: epochs(), promised: epochs(), left: map[string]departed{}}
}

// add has a gang wait that has been refused, or wait for something else.
func (w *waitlist) add(g *gang) {
	w.gangs.add(g)
	g.filed.listed = true
	w.file(g)
}

func (w *waitlist) remove(g *gang) {
	if g.run == nil {
		return
	}
	if !g.woken {
		g.absent = false
		w.roused.remove(g)
	}
	if g.filed.listed {
		w.unfile(g)
		w.gangs.remove(g)
		g.filed = filing{}
	}
	w.note(g)
}

// wakeRoom notes that GPUs of a flavor have become free, for the gangs that may fit now.
func (w *waitlist) wakeRoom(flavor string) {
	w.changes(flavor)
	w.room[flavor] = w.epoch
	w.stirred = true
}

// changedFor returns when that last changed on which it rests when a gang starts: what there is of its flavor, and whom
// it asks to pay.
func (w *waitlist) changedFor(g *gang) int64 {
	changed := max(w.payers, w.dating[g.full.Flavor])
	if g.filed.dateless != nil {
		changed = max(changed, w.promised[g.full.Flavor])
	}
	pays := func(name string) { changed = max(changed, w.budget[name], w.edited[name], w.hours[name]) }
	for _, name := range g.refusal.Payers {
		pays(name)
	}
	if p := g.promise; p != nil {
		for i := range p.Payers {
			pays(p.Payers[i].Budget)
		}
	}
	return changed
}

// promises notes that something else is promised than was.
func (w *waitlist) promises(flavor string) {
	w.epoch++
	w.promised[flavor] = w.epoch
}

// changes notes that something has changed on which dates rest.
func (w *waitlist) changes(flavor string) {
	w.epoch++
	w.dating[flavor] = w.epoch
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
	if w.rejected[flavor] > 0 {
		w.wakeRoom(flavor)
	}
}

// wakeNodes notes that the nodes of a flavor have changed, also for the gangs that fitted none of them.
func (w *waitlist) wakeNodes(flavor string) {
	w.wakeRoom(flavor)
	w.nodes[flavor] = w.epoch
}

// alter notes that the nodes of a flavor are others for rules that look at several of them.
func (w *waitlist) alter(flavor string) { w.altered[flavor] = w.epoch }

// wakeBudget notes that a Budget may be able to pay for more.
func (w *waitlist) wakeBudget(name string) {
	w.epoch++
	w.budget[name] = w.epoch
	w.stirred = true
}

// owe has that be kept for a gang which it is to be paid from, by what it is promised, or by its Reservation while that
// has not been worked out. Those are looked at for whom there may be more than there was.
func (w *waitlist) owe(g *gang) {
	g.keeping = w.keepFor(g)
	for _, name := range w.debts.set(g, g.owedBy()) {
		w.wakeOwing(name)
	}
}

// wakeOwing notes that a Budget owes less to others, for those who wait for that. No date rests on it.
func (w *waitlist) wakeOwing(name string) {
	w.epoch++
	w.eases[name] = w.epoch
	w.stirred = true
}

// wakeEdited notes that a Budget pays for more, or has begun to.
func (w *waitlist) wakeEdited(name string) {
	w.epoch++
	w.edited[name], w.funds = w.epoch, w.epoch
	w.stirred = true
}

// wakeHours notes that a Budget pays for more GPU-hours.
func (w *waitlist) wakeHours(name string) {
	w.epoch++
	w.hours[name], w.funds = w.epoch, w.epoch
	w.stirred = true
}

// wakePayers notes that Budgets have changed, so that anybody may be able to pay for more.
func (w *waitlist) wakePayers() {
	w.epoch++
	w.payers, w.funds = w.epoch, w.epoch
	w.stirred = true
}

// passOn has a gang that was woken not be planned now, so that what it was woken for is the next one's.
func (w *waitlist) passOn(g *gang) {
	if g.woken {
		g.woken = false
		w.lookAgain(g)
	}
}

// pardon has a gang that is woken be tried again on the nodes that turned it down, if something has changed there
// since. Places that were planned and given back change nothing, nor do pods that have come and left since: two gangs
// that give back to each other what neither can use would wake each other for ever. Nor do shards and spares, which
// make room for each try. Nodes that turned it down for want of GPUs have them as soon as whoever leaves them is gone.
// What else there is comes to light with its retry, which comes the later the more often one was in vain.
func (w *waitlist) pardon(g *gang) {
	all := w.nodes[g.full.Flavor] > g.tried
	elsewhere := len(g.check.skewed) > 0 && w.leftSince(g)
	if elsewhere { // which is about no node that turned it down: its retries come ever later all the same
		g.forget(func(node string) bool { return g.check.skewed[node] })
		g.check.move()
		g.check.skewed = nil
	}
	before := len(g.upTo) + len(g.turnedBy())
	g.forget(func(node string) bool { return all || w.left[node].since(g) })
	if all {
		g.check.reaches = nil
	}
	if all || elsewhere {
		g.check.forgetLayout(elsewhere || w.altered[g.full.Flavor] > g.tried)
	}
	if all || len(g.upTo)+len(g.turnedBy()) < before {
		g.check.fails = 0
	}
	g.readmit(func(_, why string) bool { return w.args.GPUResource.NamedIn(why) })
}

// wake has a gang planned again: by its leader's scheduling cycle, or, when it has no pods for want of a shape, by the
// Run controller.
func (w *waitlist) wake(g *gang) {
	if g.opportunistic() && g.shape == nil && !g.unpaid {
		return // Fill looks after it
	}
	w.rouse(g)
	w.pardon(g)
	if g.shape != nil || g.active.present == 0 || g.unpaid {
		g.tried = w.epoch
		g.woken, g.asked = false, true
		w.roused.remove(g)
		if g.run != nil {
			w.mail.reconcile(keyOf(g.run), lane.Begin)
		}
		return
	}
	if lead := g.leader(); lead != nil {
		w.mail.activate(lead.pod)
	}
}

// rouse notes that a gang is to be planned.
func (w *waitlist) rouse(g *gang) {
	if !g.woken && g.run != nil {
		g.called = time.Time{}
		w.roused.add(g)
	}
	g.woken, g.absent = true, false
}

// callAgain has those tried who were to be and have not come for long, again and again until they do: the scheduling
// queue may have lost a pod. What they were woken for is others' meanwhile.
func (w *waitlist) callAgain(now time.Time) {
	w.roused = slices.DeleteFunc(w.roused, func(g *gang) bool { return !g.woken && !g.absent })
	for _, g := range w.roused {
		switch {
		case g.called.IsZero():
			g.called = now
		case !now.Before(g.called.Add(comesWithin)):
			if g.woken {
				g.woken, g.absent, g.tried, w.stirred = false, true, w.epoch, true
			}
			g.called = now
			if lead := g.leader(); lead != nil {
				w.mail.activate(lead.pod)
			}
		}
	}
}

// nextCall tells when that is to be done.
func (w *waitlist) nextCall(e *earliest, now time.Time) {
	for _, g := range w.roused {
		switch {
		case !g.woken && !g.absent:
		case g.called.IsZero():
			e.by(now)
		default:
			e.by(g.called.Add(comesWithin))
		}
	}
}

// comesWithin is how long the leader of a gang that is woken may take to be tried.
const comesWithin = time.Minute

// greet has the gang of a pod planned that has just come. A leader comes by itself: it would be tried twice.
func (w *waitlist) greet(m *member) {
	if g := m.gang; g.leader() == m && !g.unpaid && !g.opportunistic() {
		w.rouse(g)
		w.pardon(g)
		return
	}
	w.wake(m.gang)
}

// wakeStirred wakes the gangs that what was improved since they were last looked at may be for, once, in the order of
// the places that they have by then.
func (w *waitlist) wakeStirred() {
	w.reorder(w.order.settle())
	if w.stirred {
		w.stirred = false
		w.wakeNext()
	}
}

// refuse has a gang wait, whose date is to be worked out.
func (w *waitlist) refuse(g *gang, refusal *plan.Refusal) {
	if !g.started() && !g.opportunistic() {
		g.futile.note(g.active.present+g.spares.present-g.standIns, refusal)
	}
	g.refusal, g.seen, g.purse.left = refusal, -1, false
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
