package book

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Exchanges returns the pairs of open Leases of a Run that are to exchange payers: what others pay for is to be the
// last of a Run that may become narrower, since it is given back first (R6). A Run that is about to grow further has
// none yet, nor has one that is cut, for which others count on who pays.
func (b *Book) Exchanges(run types.UID) [][2]types.NamespacedName {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	if g == nil || !b.roster.open || !b.roster.classes.elastic[g] || !g.touches(borrowed) || !g.restsAsWide() ||
		b.cuts.isCut(g) {
		return nil
	}
	var out [][2]types.NamespacedName
	for _, of := range [...]*squad{&g.active, &g.spares} {
		leases, names := make([]string, 0, len(of.members)), make(map[string]types.NamespacedName, len(of.members))
		for _, m := range of.members {
			if m == nil || m.stage != bound || m.leaving || m.doomed() || !b.nodes.stands(m.node) {
				continue
			}
			if name := b.seats.leaseOf(m.pod); b.seats.leases[name] != nil {
				leases = append(leases, name.String())
				names[name.String()] = name
			}
		}
		for _, pair := range b.accounts.Exchanges(leases) {
			out = append(out, [2]types.NamespacedName{names[pair[0]], names[pair[1]]})
		}
	}
	return out
}

// borrowed reports whether others than its Run's owner pay for a member.
func borrowed(m *member) bool { return m.payer.others() }

// others reports whether who pays is not the owner himself.
func (p payer) others() bool { return p.relation.Step() > 0 }

// restsAsWide reports whether a gang has all its ranks and does not grow, nor is about to: each step of a growth that
// goes on would have payers exchanged anew.
func (g *gang) restsAsWide() bool {
	return g.shape == nil && g.growing() == 0 && len(g.vacant) == 0 && (g.nextWidth() == 0 || g.growthLacks() != "")
}

// continued has a pod go on under another Lease, once all are read that there may be.
func (led *ledger) continued(l *rqv1.Lease) {
	if !led.roster.open {
		led.repaid = append(led.repaid, l)
		return
	}
	led.continues(l)
}

// continues has a pod go on under another Lease, and the pod with which it has exchanged payers under the one that
// follows: what is written first of the two says so of both. Nothing that they hold changes.
func (led *ledger) continues(l *rqv1.Lease) {
	r, at := l.Spec.Repaid, l.Spec.Start.Time
	mine := types.NamespacedName{Namespace: l.Namespace, Name: r.Lease}
	other := types.NamespacedName{Namespace: l.Namespace, Name: r.With}
	was, with := led.seats.leases[mine], led.seats.leases[other]
	if was == nil {
		return
	}
	if with != nil {
		next := types.NamespacedName{Namespace: l.Namespace, Name: rank.NextLeaseName(r.With, with.continues)}
		led.repay(other, next, was.charge, at)
	}
	led.repay(mine, keyOf(l), ChargeIn(l), at)
}

// repay has the pod of an open Lease go on under another, on the payer of a charge.
func (led *ledger) repay(was, next types.NamespacedName, payer budget.Charge, at time.Time) {
	old := led.seats.leases[was]
	led.accounts.Close(was.String(), at)
	led.seats.forgetLease(was, old)
	led.seats.current[old.pod] = next
	now := led.seats.leases[next]
	if now != nil { // both have been open, and counted
		led.uncount(old)
	} else {
		now = new(*old)
		now.continues, now.charge.Start, now.charge.Admitted = true, at, payer.AdmittedAt()
		now.charge.Payer, now.charge.Relation, now.charge.Until = payer.Payer, payer.Relation, payer.Until
		led.seats.noteLease(next, now)
		led.accounts.Open(next.String(), now.charge)
	}
	if m := led.roster.members[now.pod]; m != nil {
		m.payer = payerOf(now.charge)
	}
	led.note(now)
}

// uncount counts an open Lease no more.
func (led *ledger) uncount(l *lease) {
	led.roster.countLease(types.UID(l.charge.Run), -1)
	led.seats.roles[l.charge.Role] -= l.charge.GPUs
}

// repaidBefore has pods go on under their later Leases that have been read.
func (led *ledger) repaidBefore() {
	for _, l := range led.repaid {
		if led.seats.leases[keyOf(l)] != nil {
			led.continues(l)
		}
	}
	led.repaid = nil
}

// closesRepaid records that a Lease is closed whose pod goes on under another.
func (led *ledger) closesRepaid(name types.NamespacedName, charge budget.Charge, ended time.Time) {
	led.accounts.Past(name.String(), charge, ended)
	if l := led.seats.leases[name]; l != nil {
		led.seats.forgetLease(name, l)
		led.uncount(l)
	}
}
