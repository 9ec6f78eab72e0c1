package book

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// retell has it be told why a gang does not start as a study has found it, rather than as it was when it was last
// tried: what is said to be so now is (R29). What other rules said is known from when it was tried alone.
func (v *activations) retell(s *study) {
	g, fresh := s.gang, s.refusal
	if s.promise != nil {
		fresh = s.promise.Now
	}
	was := g.refusal
	switch {
	case fresh == nil, was == nil, fresh.Reason != was.Reason && !(ofRoomOrMoney(fresh) && ofRoomOrMoney(was)):
		return
	case s.promise != nil && g.started():
		return // it lacks a rank, or grows
	case g.unpaid && !fresh.AboutMoney():
		return // it is asked again who pays once that may have changed
	}
	is := *fresh
	is.Spare, is.Grow, is.Belated = was.Spare, was.Grow, was.Belated
	v.nodes.sayWhy(&is, g.model())
	switch {
	case s.promise == nil:
		v.nodes.sayWithout(&is, v.future.rejection(s), g)
	case was.Rejected != nil && !was.Rejected.Vain:
		v.nodes.sayWithout(&is, was.Rejected, g)
	}
	is.Bound(fresh.MaxDuration)
	if !is.SameAs(was) {
		g.refusal = &is
		v.waiting.file(g)
		v.mail.reconcile(keyOf(g.run), lane.Date)
	}
}

// ofRoomOrMoney reports whether a refusal is for want of GPUs or of money, which come and go without the gang being
// tried.
func ofRoomOrMoney(r *plan.Refusal) bool { return r.Reason == plan.InsufficientGPUs || r.AboutMoney() }

// usurpers says which other Runs have taken what a gang was promised, since its Reservation was made: money that it was
// to be paid from, where that is short, or else GPUs on its nodes. It is empty where none has.
func (v *activations) usurpers(g *gang) string {
	if g.reservation == nil {
		return ""
	}
	payers, nodes := map[budget.Key]bool{}, map[string]bool{}
	for _, p := range g.promise.Payers {
		payers[budget.Key{Budget: p.Budget, Envelope: p.Envelope}] = true
	}
	for _, held := range g.promise.Nodes {
		nodes[held.Node] = true
	}
	money := g.refusal.LacksMoney()
	taken := func(m *member) bool {
		return m.placed() && (money && payers[m.payer.key] || !money && nodes[m.node]) &&
			beganBefore(g.reservation.CreationTimestamp.Time, v.seats.heldSince(m))
	}
	type usurper struct {
		name string
		gpus int
	}
	var all []usurper
	for other := range v.roster.living {
		if other == g || other.run == nil {
			continue
		}
		gpus := 0
		for m := range other.all() {
			if taken(m) {
				gpus += other.demand.GPUsPerPod
			}
		}
		if gpus > 0 {
			all = append(all, usurper{keyOf(other.run).String(), gpus})
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(x, y usurper) int {
		return cmp.Or(cmp.Compare(y.gpus, x.gpus), cmp.Compare(x.name, y.name))
	})
	of := "on its nodes"
	if money {
		of = "from the envelopes that were to pay for it"
	}
	text := fmt.Sprintf("Run %s has since taken %d GPUs %s", all[0].name, all[0].gpus, of)
	if more := len(all) - 1; more > 0 {
		text += fmt.Sprintf(", and so have %d more Runs", more)
	}
	return text
}
