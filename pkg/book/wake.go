package book

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// unlock ends a change to the book: whatever it improved wakes those that wait for it, once.
func (b *Book) unlock() {
	if b.stirred {
		b.stirred = false
		b.wakeNext()
	}
	b.mu.Unlock()
}

// waitlist holds the refused gangs, oldest Run first, and when the things that they wait for last improved. A refused
// gang costs nothing until something improves that could change its fate.
type waitlist struct {
	gangs []*gang
	// epoch counts improvements. It stands beside what the last one improved: the GPUs that are free and the nodes that
	// there are, by flavor, and what can be paid, by Budget.
	epoch       int64
	room, nodes map[string]int64
	budget      map[string]int64 // by Budget
	payers      int64            // when any Budget changed, and with it perhaps who may ask whom
}

// byAge orders gangs by the age of their Runs, then by namespace and name (R30).
func byAge(x, y *gang) int {
	a, b := x.run, y.run
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name))
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
func (b *Book) wakeRoom(flavor string) {
	b.waiting.epoch++
	b.waiting.room[flavor] = b.waiting.epoch
	b.stirred = true
}

// wakeNodes notes that the nodes of a flavor have changed, also for the gangs that fitted none of them.
func (b *Book) wakeNodes(flavor string) {
	b.wakeRoom(flavor)
	b.waiting.nodes[flavor] = b.waiting.epoch
}

// wakeBudget notes that a Budget may be able to pay for more.
func (b *Book) wakeBudget(name string) {
	b.waiting.epoch++
	b.waiting.budget[name] = b.waiting.epoch
	b.stirred = true
}

// wakePayers notes that Budgets have changed, so that anybody may be able to pay for more.
func (b *Book) wakePayers() {
	b.waiting.epoch++
	b.waiting.payers = b.waiting.epoch
	b.stirred = true
}

// wakeNext wakes refused gangs, oldest first, for which something has improved since they were last tried, and no more of
// them than the free GPUs could serve: the rest are looked at again when those have been planned.
func (b *Book) wakeNext() {
	free := map[string]int{}
	purse := purse{book: b, left: map[purseKey]int{}}
	for _, g := range b.waiting.gangs {
		if g.shape == nil && !g.complete() && !g.unpaid {
			continue // its last pod's arrival wakes it
		}
		flavor := g.run.Spec.Resources.GPUType
		if _, known := free[flavor]; !known {
			free[flavor] = b.fleet.FreeOf(flavor)
		}
		if !g.woken && (!b.improved(g, free[flavor]+b.roomOf(g)) || g.refusal.AboutMoney() && !g.keepsRoom() && !g.opportunistic() && !purse.take(g, flavor)) {
			continue
		}
		if g.shape == nil && !g.unpaid { // else it is not planned now, so that nobody would look at the rest
			free[flavor] -= g.needs()
		}
		if !g.woken {
			b.wake(g)
		}
	}
}

// purse is what Budgets could still pay for, less what the gangs that are woken might take of it.
type purse struct {
	book *Book
	left map[purseKey]int
}

type purseKey struct{ budget, flavor string }

// take takes what a gang needs from the Budgets that it may ask, and reports whether they could have so much.
func (p purse) take(g *gang, flavor string) bool {
	need, have := g.missing()*g.demand.GPUsPerPod, 0
	payers := g.refusal.Payers
	if p.book.waiting.payers > g.tried {
		return true // others may have come to be asked
	}
	for _, name := range payers {
		k := purseKey{name, flavor}
		if _, known := p.left[k]; !known {
			p.left[k] = p.book.accounts.Headroom(name, flavor)
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

// improved reports whether what a gang waits for has improved since it was last tried, and could be enough now.
func (b *Book) improved(g *gang, free int) bool {
	flavor := g.run.Spec.Resources.GPUType
	switch g.refusal.Reason {
	case plan.InsufficientGPUs:
		return b.waiting.room[flavor] > g.tried && g.needs() <= free
	case plan.NodesRejected, plan.NotYet:
		return b.waiting.room[flavor] > g.tried
	case plan.UnknownGPUType, plan.NeverFits, plan.Indivisible:
		return b.waiting.nodes[flavor] > g.tried
	}
	return g.refusal.AboutMoney() && (b.richer(g) || g.refusal.Elsewhere && b.waiting.room[flavor] > g.tried)
}

// richer reports whether any of those who were asked to pay for a gang may be able to pay for more since. No Lease that ends opens a
// window, or has anybody pay who does not.
func (b *Book) richer(g *gang) bool {
	if b.waiting.payers > g.tried {
		return true
	}
	closed := g.refusal.Reason == plan.WindowClosed || g.refusal.Reason == plan.NoBudget
	return !closed && slices.ContainsFunc(g.refusal.Payers, func(name string) bool { return b.waiting.budget[name] > g.tried })
}

// Retry has a Run planned again that was refused for something which may pass without an event, such as nodes that other
// scheduling rules rejected: what those look at is not in the book.
func (b *Book) Retry(run types.NamespacedName) {
	b.mu.Lock()
	defer b.unlock()
	if g := b.gangs[b.runs[run]]; g != nil && g.refusal != nil && g.refusal.Passes() && !g.woken {
		clear(g.excluded)
		b.wake(g)
	}
}

// missing returns the number of the gang's pods that need room together: those without a node, at its least width. Of
// spares alone, one has use of any room.
func (g *gang) missing() int {
	least := g.narrowest()
	active, spares := least.Pods()-g.active.assigned, least.Spares()-g.spares.assigned
	switch {
	case !g.started():
		return active + spares
	case active > 0:
		return active
	}
	return min(spares, 1)
}

// needs returns how many free GPUs the gang needs together, beside those that are kept for it.
func (g *gang) needs() int { return max(0, g.missing()*g.demand.GPUsPerPod-g.keptGPUs()) }

// wake has a gang planned again: by its leader's scheduling cycle, or, when it has no pods for want of a shape, by the Run
// controller.
func (b *Book) wake(g *gang) {
	if g.opportunistic() && g.shape == nil && !g.unpaid {
		return // Fill looks after it
	}
	g.woken = true
	b.pardon(g)
	if g.shape != nil || g.active.present == 0 {
		g.tried = b.waiting.epoch
		g.woken, g.asked = false, true
		if g.run != nil {
			b.reconcile(keyOf(g.run))
		}
		return
	}
	if lead := g.leader(); lead != nil {
		b.activate(lead.pod)
	}
}

// passOn has a gang that was woken not be planned now, so that what it was woken for is the next one's.
func (b *Book) passOn(g *gang) {
	if g.woken {
		g.woken, b.stirred = false, true
	}
}
