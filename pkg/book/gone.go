package book

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// goneInVain keeps how often places were held in vain for groups that are gone (R46): who deletes a group and makes it
// anew begins no new count. It is in the status of the Budget that is asked first to pay for their owner.
type goneInVain struct {
	args     *config.Args
	accounts *budget.Accounts
	roster   *roster
	mail     *mailbox
	counts   map[string]map[ownerIn]rqv1.RunHeldInVain // by Budget
	left     []goneRun                                 // since the last sweep
}

// ownerIn is an owner in a namespace.
type ownerIn struct {
	owner     rqv1.Owner
	namespace string
}

// goneRun is a Run that has been deleted: what its status said, and from when until when, zero for now, an attempt held
// places that was not over.
type goneRun struct {
	budget      string
	of          ownerIn
	was         *rqv1.RunHeldInVain
	since, till time.Time
}

func ownerOf(run *rqv1.Run) ownerIn { return ownerIn{run.Spec.Owner, run.Namespace} }

// leaves notes a gang whose Run is being deleted.
func (n *goneInVain) leaves(g *gang) {
	if !n.roster.open || g.run == nil || !g.run.Spec.TheirsComeLate() {
		return // of what went before this process led it does not know when
	}
	d := goneRun{of: ownerOf(g.run), was: g.run.Status.HeldInVain,
		budget: n.accounts.FirstPayer(g.run.Spec.Owner, g.run.Spec.Resources.GPUType)}
	d.since, d.till = g.holdsForAbsent()
	if d.budget != "" && (d.was != nil || !d.since.IsZero()) {
		n.left = append(n.left, d)
	}
}

// holdsForAbsent returns from when until when an attempt has held places for pods that have not been made, by the
// Leases of those that have come: zero where none has that has not been counted, and where it goes on.
func (g *gang) holdsForAbsent() (since, till time.Time) {
	if g.started() || g.over() {
		return since, till
	}
	open := false
	for part, l := range g.latest {
		if part.Spare || l.attempt != g.run.Status.Attempt || l.lost() {
			continue
		}
		if since.IsZero() || l.held.Before(since) {
			since = l.held
		}
		open, till = open || l.ended.IsZero(), latest(till, l.ended)
	}
	if open {
		till = time.Time{}
	}
	h := g.run.Status.HeldInVain
	if !g.lacksAny() || h != nil && !since.Truncate(time.Second).After(h.Since.Time) {
		return time.Time{}, time.Time{}
	}
	return since, till
}

// lacksAny reports whether a rank has no pod and has had none in this attempt, as far as Leases say.
func (g *gang) lacksAny() bool {
	for index := range g.demand.Pods() {
		l, m := g.latest[rank.Part{Index: index}], g.active.memberAt(index)
		came := l != nil && l.attempt == g.run.Status.Attempt && !l.lost()
		if !came && (m == nil || m.standIn) {
			return true
		}
	}
	return false
}

// next tells that something is to be settled.
func (n *goneInVain) next(e *earliest, now time.Time) {
	if len(n.left) > 0 {
		e.by(now)
	}
}

// settle counts what was left since the last sweep. Runs that are to begin with it are looked at.
func (n *goneInVain) settle(now time.Time) {
	touched := map[ownerIn]bool{}
	for _, d := range n.left {
		h := d.was.Left(now)
		if till := cmp.Or(d.till, now); !d.since.IsZero() && till.Sub(d.since) > rqv1.HeldUnpaid {
			next := rqv1.RunHeldInVain{Count: 1, Since: metav1.NewTime(d.since.Truncate(time.Second))}
			if h != nil {
				next.Count = min(h.Count+1, rqv1.MostInVain)
			}
			next.Until = metav1.NewTime(now.Add(n.args.GangDeadline.Duration << next.Count).Truncate(time.Second))
			h = &next
		}
		if h != nil {
			n.put(d.budget, d.of, *h)
			touched[d.of] = true
		}
	}
	n.left = nil
	if len(touched) == 0 {
		return
	}
	for g := range n.roster.living {
		if g.run != nil && touched[ownerOf(g.run)] && n.inheritedBy(g) != nil {
			n.mail.reconcile(keyOf(g.run), lane.Date)
		}
	}
}

// put notes a count, unless one is there of which the rest takes longer.
func (n *goneInVain) put(of string, by ownerIn, h rqv1.RunHeldInVain) {
	if n.counts[of] == nil {
		n.counts[of] = map[ownerIn]rqv1.RunHeldInVain{}
	}
	if was, there := n.counts[of][by]; !there || was.Until.Before(&h.Until) {
		n.counts[of][by] = h
	}
}

// read takes over what the status of a Budget says.
func (n *goneInVain) read(b *rqv1.Budget) {
	for _, h := range b.Status.HeldInVain {
		n.put(b.Name, ownerIn{h.Owner, h.Namespace}, h.RunHeldInVain)
	}
}

// of returns what the status of a Budget is to say, in order, and drops what is over.
func (n *goneInVain) of(name string, now time.Time) (out []rqv1.BudgetHeldInVain) {
	for by, h := range n.counts[name] {
		if h.Left(now) == nil {
			delete(n.counts[name], by)
			continue
		}
		out = append(out, rqv1.BudgetHeldInVain{Owner: by.owner, Namespace: by.namespace, RunHeldInVain: h})
	}
	byName := func(x, y rqv1.BudgetHeldInVain) int {
		return cmp.Or(cmp.Compare(x.Owner, y.Owner), cmp.Compare(x.Namespace, y.Namespace))
	}
	slices.SortFunc(out, func(x, y rqv1.BudgetHeldInVain) int {
		return cmp.Or(y.Until.Compare(x.Until.Time), byName(x, y))
	})
	out = out[:min(len(out), rqv1.MostGoneInVain)]
	slices.SortFunc(out, byName)
	return out
}

// inheritedBy returns with what a gang is to begin that is to start for the first time and whose pods are made late;
// nil for nothing. One that is about to start, or has a date, goes on with that.
func (n *goneInVain) inheritedBy(g *gang) (out *rqv1.RunHeldInVain) {
	if !g.run.Spec.TheirsComeLate() || g.run.Status.HeldInVain != nil || g.run.Status.Attempt > 0 || g.started() ||
		g.over() || g.underWay() || g.promised() != nil {
		return nil
	}
	if since, _ := g.holdsForAbsent(); !since.IsZero() {
		return nil
	}
	for _, of := range n.counts {
		h, there := of[ownerOf(g.run)]
		if there && (out == nil || cmp.Or(out.Until.Compare(h.Until.Time), cmp.Compare(out.Count, h.Count)) < 0) {
			out = &h
		}
	}
	return out
}
