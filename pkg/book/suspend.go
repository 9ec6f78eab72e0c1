package book

import (
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// suspended reports whether the gang's Run is held back, or is about to give up what it holds (R39).
func (g *gang) suspended() bool { return g.run != nil && g.run.Suspended() }

// suspend has a gang hold nothing but what the ledger or its nodes say, for as long as its Run is suspended: it waits
// for nothing, and nothing is kept for it or goes on for its sake. Those who were to be cut for it, and have not been
// told, stay.
func (b *Book) suspend(g *gang) {
	if g.check.pending {
		g.check.pending = false // what is said of its places is nothing to it any more
		b.mail.reconcile(keyOf(g.run), lane.Cut)
	}
	g.inquiry.forget()
	g.forgetChecks()
	g.denial, g.futile, g.growth = denial{}, futility{}, growth{}
	b.turns.letOff(g)
	b.places.unwind(g)
	for _, m := range slices.Concat(g.active.members, g.spares.members) {
		if m == nil || m.stage != assigned && m.stage != reserved {
			continue
		}
		if m.stage == reserved {
			b.mail.reject(m.pod.UID)
		}
		b.places.release(m)
	}
	b.seats.vacateAll(g)
	b.seats.giveAsideFrom(g, 0)
	b.kept.dropRoom(g)
	b.waiting.passOn(g)
	b.waiting.remove(g)
	g.refusal, g.kept, g.narrower = nil, nil, 0
	g.unpaid, g.asked = false, false
	b.agenda.signalDue() // it is to be found out when it would start
}
