package book

import (
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

// pledge is money that has been found for a Run without pods: until it is planned, or has had its time, no other Run
// that asks the same Budgets is given a pod for the same money (R32).
type pledge struct {
	gang  *gang
	plan  int64 // the last that it had
	crowd crowdKey
	gpus  int
	until time.Time
	// promise is what the gang was promised; nil where it had no date.
	promise *forecast.Promise
}

// pledgeLasts is how long a Run for which there is money may take to be planned before others are tried: its pods may
// never come. One from whose money all others are kept may take as long as a gang to come together.
const pledgeLasts = 10 * time.Second

// pledge has a gang that waits for money, and for which there is some now, go before those that ask the same Budgets.
func (w *waitlist) pledge(g *gang, now time.Time) {
	lasts := pledgeLasts
	if g.keeping != nil || g.promise != nil {
		lasts = w.args.GangDeadline.Duration
	}
	if c := g.filed.crowd; c != nil && c.helps == byMoney {
		w.pledges = slices.DeleteFunc(w.pledges, func(p pledge) bool { return p.gang == g })
		w.pledges = append(w.pledges, pledge{g, g.plan, c.crowdKey, g.missing() * g.demand.GPUsPerPod, now.Add(lasts),
			g.promise})
	}
}

// kept reports whether the gang may still come for its money.
func (p *pledge) kept() bool {
	g := p.gang
	return g.run != nil && g.plan == p.plan && !g.unpaid && !g.over() && !g.denied()
}

// owes reports whether the money is kept from all who come after the gang, as what it is to be paid from.
func (p *pledge) owes() bool {
	return p.gang.keeping != nil || p.promise != nil && p.gang.pledged == p.promise
}

// pledged returns how many GPUs are pledged to others that ask the same Budgets as a gang of a crowd, beside what is
// kept from it for those who have dates.
func (w *waitlist) pledged(c *crowd, g *gang) (gpus int) {
	for i := range w.pledges {
		if p := &w.pledges[i]; p.crowd.flavor == c.flavor && p.crowd.payers == c.crowdKey.payers && p.kept() &&
			!(p.owes() && g.run.Spec.MaxDuration() == 0) {
			gpus += p.gpus
		}
	}
	return gpus
}

// remind has those looked at again who cannot be paid for, and for whom somebody may be able to pay by now: those that
// were woken before them have not used what there is.
func (w *waitlist) remind(now time.Time) {
	w.pledges = slices.DeleteFunc(w.pledges, func(p pledge) bool {
		over := !now.Before(p.until)
		if over && p.owes() { // nor has it been found since when it starts
			p.gang.pledged, p.gang.purse.left = nil, p.gang.plan == p.plan
			w.note(p.gang)
			w.owe(p.gang)
		}
		return over || !p.kept() && !p.owes()
	})
	w.stirred = w.stirred || w.owed
}

// nextPledge tells when a pledge ends for which others have waited long enough.
func (w *waitlist) nextPledge(e *earliest) {
	for i := range w.pledges {
		e.by(w.pledges[i].until)
	}
}
