package book

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// ledger follows the Leases: which are open, and which each part of a Run had last.
type ledger struct {
	accounts *budget.Accounts
	args     *config.Args
	nodes    *nodeTable
	roster   *roster
	waiting  *waitlist
	cuts     *cutTable
	seats    *seating
	// repaid are Leases that continue others, until all have been read.
	repaid []*rqv1.Lease
}

// note remembers the Lease that a part of a Run has had last: who takes a part over is paid for by what the ledger says
// of it, whatever a pod says. Shards take nothing over.
func (led *ledger) note(l *lease) {
	g := led.roster.gangs[types.UID(l.charge.Run)]
	if g == nil {
		return
	}
	g.leased, l.charge = true, g.endingWithRun(l.charge)
	if m := led.roster.members[l.pod]; m != nil {
		m.had = l
		g.noteRan(m)
	}
	if g.over() || l.charge.Role == rqv1.RoleBorrowed {
		return
	}
	switch last := g.latest[l.part]; {
	case last == nil:
	case last.pod == l.pod:
		l.inherits(last)
		if l.done != nil && l.unwoundFrom(g) {
			l = l.done
		}
	case l.before(last) && l.reason == rqv1.ClosedCompleted && last.unwoundFrom(g):
	case l.before(last):
		last.follows(l)
		return
	case last.reason == rqv1.ClosedCompleted && l.unwoundFrom(g):
		return
	default:
		l.follows(last)
	}
	if g.latest == nil {
		g.latest = map[rank.Part]*lease{}
	}
	g.latest[l.part] = l
}

// noteAll notes all open Leases: some may have been seen before their Runs were.
func (led *ledger) noteAll() {
	for _, l := range led.seats.leases {
		led.note(l)
		if h := led.seats.held[l.pod]; h != nil {
			led.seats.holdsBeside(l.pod, h)
		}
	}
}

// noteClosed notes that a Lease is closed, and why. Only a Run that runs has parts to take over; of others it is noted
// that they hold no more what they held, and where somebody else makes the pods which ranks have completed.
func (led *ledger) noteClosed(l *rqv1.Lease, charge budget.Charge) {
	g, entry := led.roster.gangs[l.Spec.RunRef.UID], entryOf(l, charge)
	if g == nil {
		return
	}
	g.leased = true
	if m := led.roster.members[entry.pod]; m != nil {
		m.had = entry
	}
	if entry.reason == rqv1.ClosedEvicted && (entry.part.Spare || charge.Role == rqv1.RoleBorrowed) {
		if g.turnedOut == nil {
			g.turnedOut = map[string]time.Time{}
		}
		g.turnedOut[entry.node] = latest(g.turnedOut[entry.node], entry.ended)
	}
	last, theirs := g.latest[entry.part], g.run != nil && g.run.Spec.Theirs()
	if g.started() || theirs || last != nil && last.pod == entry.pod {
		led.note(entry)
	}
}

// noteEnd notes when the last of the old Leases of a gang was closed: from then on its time runs.
func (led *ledger) noteEnd(l *lease, ended time.Time) {
	if g := led.roster.gangs[types.UID(l.charge.Run)]; g != nil && g.keepsRoom() && g.old(l) {
		g.requeue.until = latest(g.requeue.until, ended.Add(led.args.GangDeadline.Duration))
	}
}

// vacateLease gives back what a Lease holds. What is kept for a replacement is paid for by the same payer from then on.
func (led *ledger) vacateLease(name types.NamespacedName, l *lease, ended time.Time) {
	later, repaid := led.seats.current[l.pod]
	led.seats.forgetLease(name, l)
	led.uncount(l)
	if repaid && later != name {
		return // the pod holds by that one what it did
	}
	led.noteEnd(l, ended)
	if h := led.seats.held[l.pod]; h != nil && h.vacant {
		kept := l.charge
		kept.Start = ended
		led.accounts.Open(charged(l.pod), kept)
		led.waiting.wakeRoom(led.nodes.nodeFlavor(l.node))
	}
	led.seats.hold(l.pod, "", 0, (*holding).close)
	led.cuts.tellCutters(types.UID(l.charge.Run))
	led.waiting.wakeBudget(l.charge.Payer.Budget)
	if g := led.roster.gangs[types.UID(l.charge.Run)]; g != nil {
		led.waiting.nudge(g)
	}
}

// closeLease ends a Lease: what it spent stays, and what it holds is free unless it is kept for a replacement.
func (led *ledger) closeLease(name types.NamespacedName, ended time.Time) {
	led.accounts.Close(name.String(), ended)
	if l := led.seats.leases[name]; l != nil {
		led.vacateLease(name, l, ended)
	}
}
