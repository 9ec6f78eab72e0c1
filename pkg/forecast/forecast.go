package forecast

import (
	"sort"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// State is what is and what is known to come.
type State struct {
	Fleet    *topology.Fleet
	Accounts *budget.Accounts
	Now      time.Time
	// NotBefore is the earliest that others may be cut for the Run: its first refusal and the lead (R17).
	NotBefore time.Time
	// Patience is until when nobody is cut for a Run without maxDuration that would start at once with one (R19).
	Patience time.Time
	// Aligned is a date that has been told for when a window opens, which has opened since; zero where none has. It may
	// have come.
	Aligned time.Time
	// WindowDelay is how long after a window opens the Run may start.
	WindowDelay time.Duration
	// Releases are the ends of Runs that have a maxDuration, and of pods that have been told to go.
	Releases []Release
	// Ahead are the Reservations of other Runs, in order.
	Ahead []Ahead
	// Owed is what envelopes owe to those of them that come first, whenever their dates are (R18).
	Owed map[budget.Key][]budget.Owed
	// MoneyHorizon is how long before a date what is owed then is kept from others.
	MoneyHorizon time.Duration
	// Known is up to when it is known what is promised to others, who are too many; zero if all of it is.
	Known time.Time
	// Tenants returns the Runs that hold GPUs in some fabric domains and may be cut at an instant.
	Candidates func(domains map[string]bool, at time.Time) []resolver.Candidate
	// Loans returns what Runs have on loan in some fabric domains, which whoever starts gets back at once (R23); nil where
	// the Run is not to ask for it now.
	Loans func(domains map[string]bool, at time.Time) []resolver.Candidate
	// Notice is how long those have who give it back: what is free by then anyway need not be asked for.
	Notice time.Duration
	// Shields are the instants from which Runs may be cut that may not be now (R22), or from which cuts may do since what
	// is kept for lost ranks is given back, for whose sake alone nobody is cut.
	Shields []time.Time
}

// Release is what a Run gives back when its time is over.
type Release struct {
	At time.Time
	// Run is whose all of it is; empty when it may be but a part of what a Run holds.
	Run rqv1.NamespacedName
	// Kept says that it is what is kept for ranks that Run has lost: it is given back then, and the Run goes on, unless
	// that has given back all before.
	Kept bool
	// Leaving says that it is on its way out already: nobody is cut while that would do (R19).
	Leaving bool
	Holds   []resolver.Holding
	// Leases are the names of its charges.
	Leases []string
}

// Ahead is a Reservation that comes before the Run's if its date does.
type Ahead struct {
	Run   rqv1.NamespacedName
	Owner rqv1.Owner
	// At is when it activates, Shielded until when what it starts is not cut, and Ends when that has ended at the latest;
	// zero if nobody knows.
	At, Shielded, Ends time.Time
	// Spared says that it may not be drawn once it has started.
	Spared bool
	// Younger says that on the same date the Run comes first.
	Younger bool
	// Ousts are the Runs that go for it then, with what they give back, whatever is drawn. Runs that are ahead too may be
	// among them by name alone.
	Ousts []Release
	// Holds is its slice and Charges are what it is going to be charged, by a name for each.
	Holds   []resolver.Holding
	Charges map[string]budget.Charge
}

// Ask is what is to start.
type Ask struct {
	Demand   plan.Demand
	Claim    plan.Claim
	Missing  []plan.Missing
	Excluded func(node string) bool
}

// Promise is when and where a Run starts, and what that takes.
type Promise struct {
	At         time.Time
	Confidence string
	// Cuts says that others are cut then, unless room comes earlier.
	Cuts  bool
	Slice Slice
	// Remedies say in sentences what is going to make room.
	Remedies []string
	// Conflicts are what may be cut, with the odds, and Odds says how those were found.
	Conflicts []rqv1.Conflict
	Odds      string
	// Payers are the envelopes that are going to pay, and Nodes where the Run is going to be, with the GPUs on each.
	Payers []rqv1.PayingEnvelope
	Nodes  []resolver.Holding
	// After are the Runs ahead for which others go before it starts, in order, if it rests on that; nil where it would
	// start as well if nobody went for any of them.
	After []rqv1.NamespacedName
	// Now says why the Run does not start at once; nil where it would.
	Now *plan.Refusal
	// Paid is what is going to be charged to whom, which a Reservation does not record; nil when it is not known.
	Paid []Paid
}

// Paid is a number of GPUs that one envelope is going to pay for: of active pods or of spares, as what it is to the
// owner.
type Paid struct {
	Payer    budget.Key
	Relation rqv1.Relation
	Spare    bool
	GPUs     int
}

// Role returns what the GPUs are for.
func (p *Paid) Role() rqv1.LeaseRole {
	if p.Spare {
		return rqv1.RoleSpare
	}
	return rqv1.RoleActive
}

// Returns reports whether the Run starts by nothing but what is on loan: nobody is cut for it then.
func (p *Promise) Returns() bool { return p.Cuts && resolver.OnLoan(p.Conflicts) }

// mostShields is for how many shields to end, at most, a forecast looks at who would be cut: of more, those from the
// first on by which there are GPUs enough.
const mostShields = 8

// Earliest returns when a Run that does not fit now can start (R17): at the first known release or opening window that
// makes it fit, or, if others may be cut before that, when they may. It returns the refusal of a Run that gets no date:
// nobody is going to pay for it, or nothing that may be cut would make room. Nobody is cut while what is leaving
// already would do (R19). Nor does a Run get a date by which more may have been promised to others than is known.
func Earliest(s State, ask Ask) (*Promise, *plan.Refusal) {
	t := newTimeline(&s, &ask)
	defer t.rewind()
	now := t.refusal()
	if neverStarts(now) {
		return nil, now
	}
	if now != nil {
		now.MaxDuration = t.longest()
	}
	if now != nil && now.MaxDuration > 0 {
		s.NotBefore = latest(s.NotBefore, s.Patience)
	}
	p := t.earliest()
	if p == nil || !s.Known.IsZero() && !p.At.Before(s.Known) {
		return nil, now
	}
	p.Now = now
	return p, nil
}

// earliest returns when the Run can start by what is known; nil where nothing makes it start.
func (t *timeline) earliest() *Promise {
	s := t.s
	if p := t.returning(); p != nil {
		return p
	}
	at := latest(s.Now, s.NotBefore)
	cut := t.count(at)
	if p := t.soon(1, at, latest(s.Now, s.NotBefore.Add(soonEnough))); p != nil {
		return p
	}
	if p := t.departing(at); p != nil {
		return p
	}
	t.seek(cut)
	if !t.attempt(at).Paid() {
		n, ok := t.firstFrom(cut+1, len(t.events), t.paid)
		if !ok {
			return nil
		}
		at = t.events[n-1].at
		cut = max(n, t.count(at)) // with all that comes to pass at the same instant
		if p := t.soon(n, at, at.Add(soonEnough)); p != nil {
			return p
		}
		if p := t.departing(at); p != nil {
			return p
		}
	}
	p := t.cutting(cut, at, t.candidates)
	if p != nil && p.Returns() && !at.After(s.Now) {
		p = t.cutting(t.count(t.dueNow()), at, s.Candidates) // as Activate is going to see it
	}
	if p != nil {
		return p
	}
	return t.afterwards(cut, at)
}

// afterwards looks beyond the time at which cuts do not help: for releases, and for Runs that may be cut later.
func (t *timeline) afterwards(cut int, at time.Time) *Promise {
	n, known := t.firstFrom(cut+1, len(t.events), t.fits)
	shields := t.s.Shields[sort.Search(len(t.s.Shields), func(i int) bool { return t.s.Shields[i].After(at) }):]
	if known {
		shields = shields[:sort.Search(len(shields), func(i int) bool { return !shields[i].Before(t.events[n-1].at) })]
	}
	if len(shields) > mostShields {
		shields = shields[sort.Search(len(shields)-mostShields, func(i int) bool { return t.mayDo(shields[i]) }):]
	}
	for _, shield := range shields[:min(len(shields), mostShields)] {
		if p := t.cutting(t.count(shield), shield, t.candidates); p != nil {
			return p
		}
	}
	if known {
		return t.known(n)
	}
	return nil
}

// mayDo reports whether there would be GPUs enough at an instant, wherever they are, if all were cut who may be.
func (t *timeline) mayDo(at time.Time) bool {
	t.seek(t.count(at))
	domains := map[string]bool{}
	for _, room := range t.s.Fleet.RoomOf(t.ask.Demand.Flavor) {
		domains[room.Key] = true
	}
	w := feasibility{t.s.Fleet, nil}
	candidates := t.candidates(domains, at)
	for i := range candidates {
		w.Free(candidates[i].All())
	}
	enough := t.enough()
	for i := range candidates {
		w.Hold(candidates[i].All())
	}
	return enough
}

// refusal says why the Run does not start now.
func (t *timeline) refusal() *plan.Refusal {
	t.seek(0)
	_, refusal := t.attempt(t.s.Now).Place(t.s.Fleet)
	return refusal
}

// longest returns the longest maxDuration with which a Run that declares none would start now; 0 where none would help.
func (t *timeline) longest() time.Duration {
	t.seek(0)
	claim := t.ask.Claim
	claim.Owed = t.s.owedAt(t.s.Now)
	return plan.LongestThatFits(t.s.Fleet, t.s.Accounts, t.ask.Demand, claim, t.ask.Missing, t.ask.Excluded, t.s.Now)
}

// tenantsAt returns the Runs of which something may be had in some fabric domains at an instant.
type tenantsAt func(domains map[string]bool, at time.Time) []resolver.Candidate

// returning returns the promise to start now by what is on loan alone; nil if that would not do, or if nothing of it is
// needed for what is free soon. What older Runs are promised whose dates have come is theirs.
func (t *timeline) returning() *Promise {
	if t.s.Loans == nil {
		return nil
	}
	due := t.count(t.dueNow())
	if _, ok := t.firstFrom(due+1, t.count(t.s.Now.Add(t.s.Notice)), t.fits); ok {
		return nil
	}
	if p := t.cutting(due, t.s.Now, t.s.Loans); p != nil && p.Returns() {
		return p
	}
	return nil
}

// dueNow is the instant by which everything has come to pass whose date has come.
func (t *timeline) dueNow() time.Time { return t.s.Now.Add(1) }

// cutting returns the promise to start at an instant by cutting others; nil if that would not do.
func (t *timeline) cutting(events int, at time.Time, tenants tenantsAt) *Promise {
	t.seek(events)
	attempt := t.attempt(at)
	if !attempt.Paid() {
		return nil
	}
	p := &Promise{At: at, Cuts: true, Confidence: rqv1.ConfidenceConservative}
	opens := events > 0 && t.events[events-1].at.Equal(at) && t.events[events-1].opens
	if opens || !t.s.Aligned.IsZero() && at.Equal(latest(t.s.Aligned, t.s.Now)) {
		p.Confidence = rqv1.ConfidenceWindowAligned
	}
	for _, slice := range t.fewestDrawn(t.slices(attempt), attempt, at, tenants) {
		if t.cuttingIn(p, slice, attempt, tenants) {
			return p
		}
	}
	return nil
}

// cuttingIn works out the cuts in a slice, and reports false if they would not do. The slice ends up with no other
// domains than the Run is going to lie in, unless more would be left to the lottery in them.
func (t *timeline) cuttingIn(p *Promise, slice Slice, attempt *plan.Attempt, tenants tenantsAt) bool {
	for {
		w := feasibility{t.s.Fleet, attempt.Within(slice.Domains)}
		candidates := tenants(slice.Domains, p.At)
		var ok bool
		p.Conflicts, p.Odds, ok = resolver.Odds(w, candidates)
		if !ok {
			return false
		}
		freed := resolver.AtRisk(p.Conflicts, candidates)
		w.Free(freed)
		assignments, refusal := w.attempt.Place(t.s.Fleet)
		w.Hold(freed)
		if refusal != nil {
			return false
		}
		if domains := domainsOf(assignments); len(domains) < len(slice.Domains) {
			left := t.leftToDraw(domains, attempt, p.At, tenants)
			least := left(slice.Domains)
			if left(domains) > least {
				t.addSteps(domains, slice.Domains, candidates)
			}
			if len(domains) < len(slice.Domains) && left(domains) <= least {
				slice = t.sliceOf(domains, attempt)
				continue
			}
		}
		p.Slice = slice
		near := candidates
		if around := t.around(slice); len(around) > len(slice.Domains) {
			near = tenants(around, p.At)
		}
		p.Remedies = resolver.Remedies(slice.Deficit, candidates, near)
		t.settle(p, slice.Domains, freed, assignments)
		return true
	}
}

// settle has a promise say where the Run starts and after whom: where it was assigned to, or, if it needs nobody to go
// for those ahead, where it would be without that. It returns which.
func (t *timeline) settle(p *Promise, domains map[string]bool, cut []resolver.Holding,
	assigned []plan.Assignment) []plan.Assignment {
	after, without := t.after(p.At, domains, cut)
	if without != nil {
		assigned = without
	}
	p.After = after
	p.record(assigned, t.ask.Demand.GPUsPerPod)
	return assigned
}

// known returns the promise to start at an event that makes the Run fit.
func (t *timeline) known(n int) *Promise {
	t.seek(n)
	e := t.events[n-1]
	p := &Promise{At: e.at, Confidence: rqv1.ConfidenceKnownRelease}
	assignments, _ := t.attempt(e.at).Place(t.s.Fleet)
	assignments = t.settle(p, nil, nil, assignments)
	t.seek(0)
	p.Slice = t.sliceOf(domainsOf(assignments), t.attempt(t.s.Now))
	switch until := e.at.UTC().Format(time.RFC3339); {
	case e.opens:
		p.Confidence = rqv1.ConfidenceWindowAligned
		p.Remedies = []string{"Wait until a budget window opens at " + e.at.Add(-t.s.WindowDelay).UTC().Format(time.RFC3339)}
	case e.returns:
		p.Remedies = []string{"Wait until the planned maintenance of nodes is over at " + until}
	case e.release != nil && e.release.Kept:
		p.Remedies = []string{"Wait for places that are kept for lost pods until " + until}
	case e.release != nil && e.release.Leaving:
		p.Remedies = []string{"Wait for pods that are leaving already until " + until}
	default:
		p.Remedies = []string{"Wait for Runs that end by their maxDuration until " + until}
	}
	return p
}

func latest(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}
