package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// horizon says what is known of the time to come, as a gang is to be forecast.
type horizon struct {
	accounts   *budget.Accounts
	args       *config.Args
	fleet      *topology.Fleet
	nodes      *nodeTable
	roster     *roster
	waiting    *waitlist
	agenda     *agenda
	seats      *seating
	departures *departures
	candidates *candidates
	rebuffs    *rebuffs
}

// future returns a study of when a gang starts, of what it asks for and what is known of the time to come.
func (f *horizon) future(g *gang, pod *corev1.Pod, now time.Time) *study {
	least := g.narrowest() // what a malleable Run waits for
	if g.unpaid {
		return f.studyOf(g, pod, f.stateFor(g, now), f.askFor(g, least, pod))
	}
	missing, refusal := f.seats.missingOf(g)
	ask := f.askForSome(g, least, least.Within(missing), !g.activating(), pod)
	state := f.stateFor(g, now)
	if !g.activating() {
		if g.check.rests || now.Before(g.check.clear) || f.rebuffs.rebuffed(g, now) != nil {
			state.Candidates, state.Loans = nobody, nil
		}
		ask.Excluded, ask.Claim.Most = g.check.without(ask.Excluded), g.mostThen()
	}
	s := f.studyOf(g, pod, state, ask)
	s.refusal = refusal
	if !g.activating() {
		s.reaches = g.check.reaches
	}
	return s
}

// fitsNow reports whether a gang that has nothing would start, if it had its leader.
func (f *horizon) fitsNow(g *gang, now time.Time) bool {
	ask := f.askFor(g, g.full.Least(), g.model())
	ask.Claim.Owed = f.agenda.debts.keeps(g, false, now)
	return slices.ContainsFunc(within(g.check.reaches, ask.Excluded), func(excluded func(string) bool) bool {
		return plan.Fits(f.fleet, f.accounts, ask.Demand, ask.Claim, ask.Missing, excluded, now)
	})
}

// askFor returns what a gang asks for that has nothing yet, with a demand and by its pods' rules.
func (f *horizon) askFor(g *gang, d plan.Demand, pod *corev1.Pod) forecast.Ask {
	return f.askForSome(g, d, d.EveryPod(), false, pod)
}

// askForSome is askFor with other pods missing than all, by what nodes have said of a decision to cut too. A forecast
// asks about a gang many times: one whose pods are of very many kinds is asked about on nodes that all of them may use.
func (f *horizon) askForSome(g *gang, d plan.Demand, missing []plan.Missing, cuts bool, pod *corev1.Pod) forecast.Ask {
	ask := forecast.Ask{Demand: d, Claim: g.claim(nil), Missing: missing}
	if len(g.variants()) <= mostVariants {
		ask.Missing, ask.Excluded = f.nodes.byKind(g, missing, cuts), f.nodes.rejectedAll(g, pod)
	} else {
		ask.Excluded = f.nodes.rejected(g, pod)
	}
	return ask
}

// notBefore returns the earliest that others may be cut for a gang: after its lead, and not before a date that has been
// told and has as good as come, as when its window has opened, in which case aligned is that date.
func (f *horizon) notBefore(g *gang, now time.Time) (at, aligned time.Time) {
	lead, r := f.agenda.refusedSince(g).Add(f.args.ReservationLead.Duration), g.reservation
	if r == nil || r.Ended() || r.Spec.EarliestStart.After(now.Add(f.args.WindowDelay.Duration)) {
		return lead, aligned
	}
	if told := r.Status.Forecast; told != nil && told.Confidence == rqv1.ConfidenceWindowAligned {
		aligned = r.Spec.EarliestStart.Time
	}
	return latest(lead, r.Spec.EarliestStart.Time), aligned
}

// stateFor returns what is known of the time to come, as it concerns a gang.
func (f *horizon) stateFor(g *gang, now time.Time) forecast.State {
	tenants := f.candidates.tenants(g, now)
	state := forecast.State{
		Fleet: f.fleet, Accounts: f.accounts, Now: now,
		Patience:    waitsSince(g.run, now).Add(plan.Lasting),
		WindowDelay: f.args.WindowDelay.Duration, Candidates: tenants.at, Notice: f.args.NoticePeriod.Duration,
		Owed: f.agenda.debts.allBefore(g), MoneyHorizon: f.args.MoneyHorizon.Duration,
	}
	state.NotBefore, state.Aligned = f.notBefore(g, now)
	state.Ahead, state.Known = f.aheadOf(g)
	if f.candidates.anyLent(g) && !now.Before(f.asksLoansFrom(g)) {
		state.Loans = tenants.loans
	}
	state.Releases = f.departures.departures(now)
	for other := range f.roster.living {
		if r := f.departures.lapses(other, now); r != nil && other != g {
			state.Releases = append(state.Releases, *r)
		}
		if other == g || other.opportunistic() || !other.started() && !other.starts() {
			continue
		}
		if end, bounded := other.endsAt(now); bounded && end.After(now) { // else it is leaving
			state.Releases = append(state.Releases, f.departures.releaseOf(other, end.Add(f.departures.graceOfAll(other))))
		}
		for _, r := range f.departures.forgone(other, now) {
			state.Releases, state.Shields = append(state.Releases, r), append(state.Shields, r.At)
		}
		if until := f.candidates.shieldFrom(other, g, now); until.After(now) {
			state.Shields = append(state.Shields, until)
		}
	}
	for i := range state.Ahead {
		state.Shields = append(state.Shields, state.Ahead[i].Shielded)
	}
	slices.SortFunc(state.Releases, func(x, y forecast.Release) int {
		return cmp.Or(x.At.Compare(y.At), slices.Compare(x.Leases, y.Leases))
	})
	slices.SortFunc(state.Shields, time.Time.Compare)
	state.Shields = slices.CompactFunc(state.Shields, time.Time.Equal)
	return state
}

// waitsSince returns since when a Run waits that does: it took its place in the queue, last ended, or was resumed.
func waitsSince(run *rqv1.Run, now time.Time) time.Time {
	since := run.QueuedSince()
	for _, name := range [...]string{rqv1.ConditionStarted, rqv1.ConditionSuspended} {
		if c := meta.FindStatusCondition(run.Status.Conditions, name); c != nil && c.Status == metav1.ConditionFalse {
			since = latest(since, c.LastTransitionTime.Time)
		}
	}
	if since.IsZero() {
		return now
	}
	return since
}

// asksLoansFrom returns from when on a gang may ask for what is on loan, if that has come to nothing.
func (f *horizon) asksLoansFrom(g *gang) time.Time {
	return latest(g.asksAgain, f.agenda.reservations.missed(g.run.UID).Add(f.args.ReservationLead.Duration))
}

func (f *horizon) comesFirst(g *gang) forecast.Ahead {
	at := g.promise.At
	a := forecast.Ahead{Run: nameOf(g.run), Owner: g.run.Spec.Owner, At: at,
		Shielded: at.Add(f.candidates.shieldOf(g.run)), Holds: g.promise.Nodes, Spared: !f.candidates.drawsOnce(g.promise),
		Charges: map[string]budget.Charge{}}
	a.Ends = g.run.Spec.Until(at)
	a.Ousts = f.oustedBy(g.promise)
	if g.promise.Returns() {
		a.Shielded = at.Add(time.Second)
	}
	for i, paid := range paidBy(g.promise) {
		role := paid.Role()
		a.Charges[fmt.Sprintf("ahead/%s/%d", g.run.UID, i)] = budget.Charge{
			Payer: paid.Payer, Owner: g.run.Spec.Owner, Run: string(g.run.UID), Relation: paid.Relation, Role: role,
			GPUs: paid.GPUs, Rate: f.accounts.RateOf(role), Start: at, Until: g.run.Spec.Until(at),
		}
	}
	return a
}

// oustedBy returns the Runs that go by a promise, whatever is drawn, and what they hold now.
func (f *horizon) oustedBy(p *forecast.Promise) []forecast.Release {
	var out []forecast.Release
	for _, c := range certainOf(p) {
		r := forecast.Release{Run: c.Run}
		if other := f.roster.gangs[f.roster.runs[named(c.Run)]]; other != nil {
			r = f.departures.releaseOf(other, p.At)
		}
		out = append(out, r)
	}
	return out
}

// certainOf returns the Runs that go by a promise, whatever is drawn.
func certainOf(p *forecast.Promise) (out []rqv1.Conflict) {
	for i := range p.Conflicts {
		if c := &p.Conflicts[i]; c.Action == rqv1.CutLottery && c.Probability == certain {
			out = append(out, *c)
		}
	}
	return out
}

// certain is a probability as conflict sets have it.
const certain = "1"

// aheadOf returns the promises made to others, in order of their dates and of their places. What they hold from then
// on matters to a gang only if its own date is not before; which of them comes first on the same date is a matter of
// their places. Runs of its owner that it has passed are left out: one of them may have been promised what it takes
// with that one's place (R44). Of many those with the first dates are returned, and the date of the next.
func (f *horizon) aheadOf(g *gang) (out []forecast.Ahead, known time.Time) {
	var promised []*gang
	for other := range f.agenda.promised {
		gaveWay := byPlace(other, g) > 0 && byOwnPlace(other, g) < 0
		if other != g && !gaveWay && other.filed.listed && other.full.Flavor == g.full.Flavor {
			promised = append(promised, other)
		}
	}
	slices.SortFunc(promised, func(x, y *gang) int { return cmp.Or(x.promise.At.Compare(y.promise.At), byPlace(x, y)) })
	if len(promised) > furthest {
		known = promised[furthest].promise.At
		promised = promised[:furthest]
	}
	resting := f.restingOn(g)
	for _, other := range promised {
		a := f.comesFirst(other)
		a.Younger = byPlace(other, g) > 0
		if resting[other] {
			a.Ousts = nil
		}
		out = append(out, a)
	}
	return out, known
}

// restingOn returns the gangs whose promises may rest on those who go for one, also by what others are promised: that
// one's own promise does not rest on theirs, or nothing would bring about either.
func (f *horizon) restingOn(g *gang) map[*gang]bool {
	after, out := map[rqv1.NamespacedName][]*gang{}, map[*gang]bool{}
	for other := range f.agenda.promised {
		if other.full.Flavor != g.full.Flavor {
			continue // nobody of another type goes for it
		}
		for _, run := range other.promise.After {
			after[run] = append(after[run], other)
		}
	}
	for next := slices.Clone(after[nameOf(g.run)]); len(next) > 0; {
		last := len(next) - 1
		other := next[last]
		next = next[:last]
		if !out[other] {
			out[other] = true
			next = append(next, after[nameOf(other.run)]...)
		}
	}
	return out
}

// paidBy returns what a promise is going to charge. A Reservation that was read at a start names the payers alone,
// until it is worked out anew: as if all were active pods of their owners.
func paidBy(p *forecast.Promise) []forecast.Paid {
	if p.Paid != nil {
		return p.Paid
	}
	var out []forecast.Paid
	for _, payer := range p.Payers {
		key := budget.Key{Budget: payer.Budget, Envelope: payer.Envelope}
		out = append(out, forecast.Paid{Payer: key, Relation: rqv1.RelationOwn, GPUs: int(payer.GPUs)})
	}
	return out
}

// nobody is who may be cut for a gang that has been rebuffed.
func nobody(map[string]bool, time.Time) []resolver.Candidate { return nil }

// mostVariants is for how many kinds of pods of a gang a forecast looks at the nodes of each.
const mostVariants = 64

// furthest is how many Reservations for its GPU type a forecast looks at: a Run that would start after so many others
// has no date.
const furthest = 64
