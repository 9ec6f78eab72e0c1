package book

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/risk"
)

// agenda is what has been promised to gangs that wait, by their Reservations, and what holds the promises back.
type agenda struct {
	args    *config.Args
	mail    *mailbox
	roster  *roster
	waiting *waitlist

	reservations reservations                            // those that there are and were
	promised     map[*gang]bool                          // the gangs that have a promise
	intended     map[string][]*gang                      // those whose promise lies on a node
	vacated      int64                                   // counts the promises that were taken back or have moved
	threats      map[types.NamespacedName]map[*gang]bool // the gangs whose promise may cut a Run
	key          []byte                                  // of the lottery
	decided      time.Time                               // the latest activation, or the latest Lease that was opened
	brake        brake.State                             // on cuts
	dues         chan struct{}
	mostBytes    int // of what an activation may publish
	debts        *debts
}

// stamped notes the instant of a Lease or of a decision: those that are made from now on come after it.
func (a *agenda) stamped(at time.Time) { a.decided = latest(a.decided, at) }

// instant returns the instant of a decision that is made now: after those of all decisions and Leases before it. What a
// clock showed that was ahead does not count: whoever is cut in the future is cut again and again until it has come.
func (a *agenda) instant(now time.Time) time.Time {
	if a.decided.Round(0).After(now.Add(clockSkew)) {
		a.decided = time.Time{}
	}
	return latest(now.Truncate(time.Microsecond), a.decided.Add(time.Microsecond))
}

// pledge takes back what a gang is promised for which money has been found, all but that money: it keeps others from
// nothing else until it is tried with its pods.
func (a *agenda) pledge(g *gang) { a.replacePromise(g, nil, g.promise) }

// setPromise replaces a gang's promise. Those whose risk it changes are looked at.
func (a *agenda) setPromise(g *gang, p *forecast.Promise) { a.replacePromise(g, p, nil) }

func (a *agenda) replacePromise(g *gang, p, pledged *forecast.Promise) {
	concerned := map[types.NamespacedName]bool{}
	a.forget(g, concerned)
	old := g.promise
	if (old == nil) != (p == nil) || old != nil && !(old.At.Equal(p.At) && slices.Equal(old.Nodes, p.Nodes) &&
		slices.Equal(old.After, p.After)) {
		a.waiting.promises(g.full.Flavor)
	}
	if old != nil {
		if p == nil || !slices.Equal(old.Nodes, p.Nodes) {
			a.vacated++
		}
		for _, held := range old.Nodes {
			a.intended[held.Node] = slices.DeleteFunc(a.intended[held.Node], func(other *gang) bool { return other == g })
			if len(a.intended[held.Node]) == 0 {
				delete(a.intended, held.Node)
			}
		}
		a.threaten(g, old, concerned, false)
	}
	g.promise, g.pledged = p, pledged
	a.waiting.owe(g)
	delete(a.promised, g)
	if p != nil {
		a.promised[g] = true
		for _, held := range p.Nodes {
			a.intended[held.Node] = append(a.intended[held.Node], g)
		}
		a.threaten(g, p, concerned, true)
	}
	if old == nil || p == nil || !old.At.Equal(p.At) || !slices.Equal(old.Conflicts, p.Conflicts) {
		for run := range concerned {
			a.mail.reconcile(run, lane.Date)
		}
	}
	if g.run != nil {
		a.mail.reconcile(keyOf(g.run), a.workOn(g))
	}
	a.signalDue()
}

// promisedOn returns how many GPUs of each node have been promised. One GPU may have been promised to several Runs, to
// one after another.
func (a *agenda) promisedOn() map[string]int {
	out := map[string]int{}
	for g := range a.promised {
		for _, held := range g.promise.Nodes {
			out[held.Node] += held.GPUs
		}
	}
	return out
}

// recall has those be at risk whom a gang's Reservation lists, while it has not been worked out whether that stands,
// and while it has not been told who of them is cut.
func (a *agenda) recall(g *gang) {
	if g.onRecord != nil && g.decides() {
		return
	}
	concerned := map[types.NamespacedName]bool{}
	a.forget(g, concerned)
	if r := g.reservation; r != nil && g.run != nil && !g.started() &&
		(g.undated() && !g.activating() || g.activating() && !revealed(r)) {
		a.suspect(g, &forecast.Promise{At: r.Spec.EarliestStart.Time, Conflicts: r.Status.ConflictSet,
			Payers: r.Spec.PayingEnvelopes})
	} else {
		a.waiting.owe(g)
	}
	for run := range concerned {
		if !a.threats[run][g] {
			a.mail.reconcile(run, lane.Date)
		}
	}
}

// suspect has those be at risk whom a record or a decision names.
func (a *agenda) suspect(g *gang, p *forecast.Promise) {
	g.onRecord = p
	a.waiting.owe(g)
	a.threaten(g, p, map[types.NamespacedName]bool{}, true) // their status says so already
}

// revealed reports whether a Reservation tells who is cut.
func revealed(r *rqv1.Reservation) bool {
	return r.Status.Lottery != nil && r.Status.Lottery.Nonce != ""
}

// forget has those be at risk no longer who are so by a record.
func (a *agenda) forget(g *gang, concerned map[types.NamespacedName]bool) {
	if g.onRecord != nil {
		a.threaten(g, g.onRecord, concerned, false)
		g.onRecord = nil
	}
}

// workOn returns what is to be done for a gang whose promise has changed. One that has come is acted upon as soon as
// its Reservation is committed to: others are about to be told to go, or to give back what is on loan.
func (a *agenda) workOn(g *gang) lane.Work {
	if p := g.promise; p != nil && p.Cuts && !p.At.After(g.looked) && !a.committedTo(g) {
		return lane.Cut
	}
	return lane.Date
}

// threaten notes which Runs a promise may cut, or that it no longer does.
func (a *agenda) threaten(g *gang, p *forecast.Promise, concerned map[types.NamespacedName]bool, does bool) {
	for i := range p.Conflicts {
		run := named(p.Conflicts[i].Run)
		concerned[run] = true
		if a.threats[run] == nil {
			a.threats[run] = map[*gang]bool{}
		}
		if a.threats[run][g] = true; !does {
			delete(a.threats[run], g)
		}
		if len(a.threats[run]) == 0 {
			delete(a.threats, run)
		}
	}
}

func (a *agenda) signalDue() {
	select {
	case a.dues <- struct{}{}:
	default:
	}
}

// commitment returns what a Reservation publishes when it is made (R21); empty while the key is not known.
func (a *agenda) commitment(reservation types.UID) string {
	if a.key == nil {
		return ""
	}
	return resolver.Commitment(resolver.Nonce(a.key, reservation))
}

// committedTo reports whether the gang's Reservation has published its commitment, without which nobody may be drawn,
// and whether the book's key keeps it.
func (a *agenda) committedTo(g *gang) bool {
	r := g.reservation
	return r != nil && a.key != nil && r.Status.Lottery != nil &&
		r.Status.Lottery.Commitment == resolver.Commitment(resolver.Nonce(a.key, r.UID))
}

// ripens reports whether something is to be done when the gang's date has come.
func (a *agenda) ripens(g *gang) bool {
	return g.promise != nil && !g.woken && !(g.unpaid && g.asked) && g.activation == nil && g.waits() &&
		(!g.promise.Cuts || a.committedTo(g) && (g.promise.Returns() || a.brake.Says() == ""))
}

// outOfTheWay returns a test for the nodes that a gang's pods had better not use: those excluded anyway, and those on
// which they would be in the way of a Reservation (R18). A gang that is over in time is in nobody's way.
func (a *agenda) outOfTheWay(g *gang, excluded func(string) bool, now time.Time) func(string) bool {
	switch {
	case g.grows():
		return a.unintended(excluded, now)
	case len(a.intended) == 0:
		return excluded
	}
	over := g.run.Spec.Until(now)
	return func(node string) bool {
		return excluded != nil && excluded(node) || slices.ContainsFunc(a.intended[node], func(other *gang) bool {
			return other != g && (over.IsZero() || over.After(other.promise.At))
		})
	}
}

// unintended returns a test for the nodes that a Run may not grow onto: those excluded anyway, and those that a
// Reservation intends whose date is no further off than the lead (R23).
func (a *agenda) unintended(excluded func(node string) bool, now time.Time) func(node string) bool {
	if len(a.intended) == 0 {
		return excluded
	}
	near := now.Add(a.args.ReservationLead.Duration)
	return func(node string) bool {
		return excluded != nil && excluded(node) ||
			slices.ContainsFunc(a.intended[node], func(g *gang) bool { return !g.promise.At.After(near) })
	}
}

// risksOf returns the Reservations whose activation may cut a Run, in order (R18).
func (a *agenda) risksOf(run types.NamespacedName) []rqv1.RunRisk {
	var out []rqv1.RunRisk
	for g := range a.threats[run] {
		p := cmp.Or(g.promise, g.onRecord)
		if p == nil || g.reservation == nil {
			continue // it is told when the Reservation is there
		}
		cuts, odds := risk.Of(p.Conflicts, rqv1.NamespacedName{Namespace: run.Namespace, Name: run.Name})
		if odds != "0" {
			out = append(out, rqv1.RunRisk{Reservation: keyOf(g.reservation).String(), At: metav1.NewTime(p.At),
				Probability: odds, Cuts: cuts})
		}
	}
	slices.SortFunc(out, compareRisks)
	return out
}

// compareRisks orders risks by date, as the API shows it, the likeliest first of one date, and by name.
func compareRisks(x, y rqv1.RunRisk) int {
	return cmp.Or(x.At.Truncate(time.Second).Compare(y.At.Truncate(time.Second)),
		cmp.Compare(resolver.Likelihood(y.Probability), resolver.Likelihood(x.Probability)),
		cmp.Compare(x.Reservation, y.Reservation))
}

// nextDate tells when the date of a gang comes.
func (a *agenda) nextDate(e *earliest) {
	for g := range a.promised {
		if a.ripens(g) {
			e.by(g.dueAt())
		}
	}
}

// wakeDue wakes the gangs whose date has come, oldest Run first.
func (a *agenda) wakeDue(now time.Time) {
	var due line
	for g := range a.promised {
		if a.ripens(g) && !g.dueAt().After(now) {
			due.add(g)
		}
	}
	for _, g := range due {
		a.waiting.wake(g)
	}
}

// nextOutdated tells when a promise is to be worked out again.
func (a *agenda) nextOutdated(e *earliest, now time.Time) {
	if a.waiting.telling(now) {
		e.by(now)
	} else if later := a.waiting.later.at; !later.IsZero() {
		e.by(later)
	}
	a.waiting.eachInTurn(func(g *gang, at standing) {
		if a.worksOut(g) && g.mayHaveDate(at) {
			e.by(latest(now, a.holdsUntil(g, at)))
		}
	})
}

// outdated reports whether what a gang is promised that stands so in line may have changed since it was worked out.
func (a *agenda) outdated(g *gang, at standing, now time.Time) bool {
	return a.worksOut(g) && g.mayHaveDate(at) && !now.Before(a.holdsUntil(g, at))
}

// holdsUntil returns until when what was found of a gang's start holds at most; zero if it may not any more. Where many
// have been found to have no date, that is not worked out again at each change, of which there may be some each second.
func (a *agenda) holdsUntil(g *gang, at standing) time.Time {
	changed, many := g.seen < a.waiting.changedFor(g), g.filed.dateless != nil && a.waiting.crowded(g)
	switch until := g.restraint.until; {
	case g.seen < 0, g.misplaced(at), changed && !many:
		return time.Time{}
	case g.promise == nil && until.After(g.looked) && until.Before(g.looked.Add(promiseMaxAge)):
		return until // from when on it may have a date
	case changed, !many:
		return g.looked.Add(promiseMaxAge)
	}
	return g.looked.Add(datelessMaxAge)
}

// worksOut reports whether a gang waits of which it was worked out before when it starts.
func (a *agenda) worksOut(g *gang) bool {
	return g.waits() && !g.woken && g.activation == nil && !g.looked.IsZero()
}

// refusedSince returns from when on a gang waits for its turn: when it was first refused. A gang whose last activation
// was planned again because of what is stuck has waited since that one was promised.
func (a *agenda) refusedSince(g *gang) time.Time {
	since := g.since
	for _, r := range a.reservations.ofRun(g.run.UID) {
		s := &r.Status
		if s.Cause == rqv1.CanceledVictimStayed && s.EndedAt != nil && since.Sub(s.EndedAt.Time).Abs() < time.Minute &&
			r.CreationTimestamp.Time.Before(since) {
			since = r.CreationTimestamp.Time
		}
	}
	return since
}

// clockSkew is how far the clocks may differ that decisions and Leases were stamped by.
const clockSkew = time.Second

// promiseMaxAge is how old a promise may grow while nothing has changed on which it rests, and datelessMaxAge what was
// found of a gang that has no date.
const (
	promiseMaxAge  = 30 * time.Second
	datelessMaxAge = 10 * promiseMaxAge
)
