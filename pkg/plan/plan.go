package plan

import (
	"cmp"
	"slices"
	"sort"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Missing is a pod of a gang that has no node yet.
type Missing struct {
	rank.Part
	// Domain that the pod's group already lies in; empty when none of it is placed.
	Domain string
	// Beside are the nodes that active pods of the group are on already; for a spare.
	Beside []string
	// Kind is what it is, where pods of the gang differ; nil where they do not.
	Kind *Kind
}

// Assignment is where a pod goes and who pays for it.
type Assignment struct {
	rank.Part
	Group        int
	Node, Domain string
	// Beside is what the pod asks for of the node beside GPUs.
	Beside   *topology.Amounts
	Payer    budget.Key
	Relation rqv1.Relation
}

// Claim is what a Run may have: what entitles it to be paid for, beside its owner, and what nodes take of it.
type Claim struct {
	// Run is the Run's UID.
	Run string
	// Funding says from whom it may borrow.
	Funding *rqv1.RunFunding
	// MaxDuration is how long it takes at most; 0 when it does not say.
	MaxDuration time.Duration
	// Until is when that is over, for one that runs; zero otherwise.
	Until time.Time
	Kept  Kept
	// Owed is what envelopes owe to Runs that come first (R18); nil where they owe nothing.
	Owed func(budget.Key) []budget.Owed
	// Leaves is how long before an outage of its node a Run that can be moved is asked to leave at the soonest (R35); 0
	// for one that cannot be.
	Leaves time.Duration
	// Most is how many more of its pods some nodes take at most, by the word of other scheduling rules.
	Most map[string]int
}

// Kept are the pods that are being replaced, by who pays for them (R8).
type Kept map[budget.Key]budget.Kept

// lasts is for how long a Run has to be paid for from an instant on: for its maxDuration, or for what is left of it; 0
// when it has none.
func (c *Claim) lasts(now time.Time) time.Duration {
	if c.Until.IsZero() {
		return c.MaxDuration
	}
	return max(time.Second, c.Until.Sub(now))
}

// ClaimOf returns what a Run may claim by its spec.
func ClaimOf(run *rqv1.Run) Claim {
	return Claim{Run: string(run.UID), Funding: run.Spec.Funding, MaxDuration: run.Spec.MaxDuration()}
}

// Gang plans all missing pods of a gang at once: it returns an assignment for each, or a refusal. Assignments come
// group by group, a group's active pods before its spares. It changes nothing.
func Gang(fleet *topology.Fleet, accounts *budget.Accounts, d Demand, claim Claim, missing []Missing,
	excluded func(node string) bool, now time.Time) ([]Assignment, *Refusal) {
	return Prepare(accounts, d, claim, missing, excluded, now).Place(fleet)
}

// Fits reports whether Gang would return an assignment for each.
func Fits(fleet *topology.Fleet, accounts *budget.Accounts, d Demand, claim Claim, missing []Missing,
	excluded func(node string) bool, now time.Time) bool {
	return Prepare(accounts, d, claim, missing, excluded, now).Fits(fleet)
}

// Attempt is a gang that may be placed on several states of a fleet, with one state of the accounts. It is valid until
// the accounts change.
type Attempt struct {
	demand  Demand
	missing []Missing
	spare   []bool
	cover   *budget.Cover
	free    func() *budget.Cover             // with nothing owed to others
	instead func(missing []Missing) *Attempt // with other pods missing; nil unless both ranks and spares are
	request topology.Request
	wanted  int      // GPUs
	several *several // where the pods are of several kinds; else nil
}

// several is missing pods of several kinds, and what else was asked for them.
type several struct {
	accounts *budget.Accounts
	claim    Claim
	kinds    []ofKind
	now      time.Time
	// looks is how many nodes have been looked at for single pods, for all that was asked.
	looks int
}

// Prepare asks who pays for the missing pods of a gang.
func Prepare(accounts *budget.Accounts, d Demand, claim Claim, missing []Missing, excluded func(node string) bool,
	now time.Time) *Attempt {
	return prepare(accounts, budget.Ask{
		Owner: d.Owner, Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod, Run: claim.Run, Funding: claim.Funding,
		MaxDuration: claim.lasts(now), Kept: claim.Kept, Owed: claim.Owed,
	}, d, claim, missing, excluded, now)
}

// prepare asks who pays for pods, spares among them.
func prepare(accounts *budget.Accounts, ask budget.Ask, d Demand, claim Claim, missing []Missing,
	excluded func(node string) bool, now time.Time) *Attempt {
	missing = byGroup(d, missing)
	kinds := byKind(missing)
	if len(kinds) == 1 {
		d.Beside, excluded = kinds[0].Beside, Either(excluded, kinds[0].Barred)
	}
	a := &Attempt{demand: d, missing: missing, spare: make([]bool, len(missing)), wanted: len(missing) * d.GPUsPerPod}
	without := ask
	for i, m := range missing {
		a.spare[i] = m.Spare
		if m.Spare {
			ask.Spares++
		}
	}
	if a.wantsBoth() {
		a.instead = instead(accounts, without, d, claim, excluded, now)
	}
	a.cover = accounts.Cover(ask, now)
	a.free = func() *budget.Cover {
		ask.Owed = nil
		return accounts.Cover(ask, now)
	}
	a.request = topology.Request{
		Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod, Beside: d.Beside, Groups: groups(d, missing),
		Confined: d.Confined, OneDomain: d.OneDomain, Excluded: excluded, Most: claim.Most, Purse: a.cover,
		From: now, Leaves: claim.Leaves,
	}
	if lasts := claim.lasts(now); lasts > 0 {
		a.request.Until = now.Add(lasts)
	}
	if len(kinds) > 1 {
		a.request.Beside = nil
		a.several = &several{accounts: accounts, claim: claim, kinds: kinds, now: now}
	}
	return a
}

// instead prepares the same for others that are missing.
func instead(accounts *budget.Accounts, ask budget.Ask, d Demand, claim Claim, excluded func(node string) bool,
	now time.Time) func([]Missing) *Attempt {
	return func(missing []Missing) *Attempt { return prepare(accounts, ask, d, claim, missing, excluded, now) }
}

// Within returns the attempt with nothing placed outside of some fabric domains, given by their keys.
func (a *Attempt) Within(domains map[string]bool) *Attempt {
	within := *a
	within.request.Within = domains
	return &within
}

// WantedGPUs is how many GPUs are to be placed, spares and all.
func (a *Attempt) WantedGPUs() int { return a.wanted }

// Window is when an envelope that could pay begins to, and when it stops; zero when it does or has already, or never.
type Window struct{ Opens, Closes time.Time }

// Windows returns the edges, still to come, of the windows of envelopes that could pay.
func (a *Attempt) Windows() []Window {
	var out []Window
	for i := range a.cover.Offers {
		if o := &a.cover.Offers[i]; !o.Opens.IsZero() || !o.Closes.IsZero() {
			out = append(out, Window{Opens: o.Opens, Closes: o.Closes})
		}
	}
	return out
}

// Dates returns the dates, sorted, of those to whom envelopes that could pay owe something, by what all envelopes owe.
func (a *Attempt) Dates(owed func(budget.Key) []budget.Owed) []time.Time { return a.cover.Dates(owed) }

// Outages returns the edges, still to come, of what is planned for nodes of a fleet that the gang could use: when a
// node can be used again, and from when on it cannot, since the gang would not have ended by then.
func (a *Attempt) Outages(fleet *topology.Fleet) []Window {
	var out []Window
	now, until := a.request.From, a.request.Until
	for _, w := range fleet.Outages(a.request.Flavor) {
		if !w.Ahead(now) {
			continue
		}
		edge := Window{Opens: w.End}
		switch {
		case !w.Shuts(now, until):
			edge.Closes = w.Start.Add(now.Sub(until) + 1) // it starts then at the latest to have ended before
		case !w.ShutsMovable(now, until, a.request.Leaves):
			edge.Closes = w.Start.Add(-a.request.Leaves)
		}
		out = append(out, edge)
	}
	slices.SortFunc(out, func(x, y Window) int {
		return cmp.Or(x.Opens.Compare(y.Opens), x.Closes.Compare(y.Closes))
	})
	return slices.CompactFunc(out, func(x, y Window) bool { return x.Opens.Equal(y.Opens) && x.Closes.Equal(y.Closes) })
}

// Paid reports whether somebody pays for the gang, if it is placed where they do.
func (a *Attempt) Paid() bool { return a.cover.Payable() >= a.wanted }

// Unpaid says why nobody pays for the gang, wherever it were placed; nil when somebody does.
func (a *Attempt) Unpaid(fleet *topology.Fleet) *Refusal {
	if a.Paid() {
		return nil
	}
	return a.unpayable(fleet, a.cover.Payable())
}

// Short packs the gang and returns what keeps it from fitting; nil when it fits.
func (a *Attempt) Short(fleet *topology.Fleet) *topology.Shortfall {
	_, short := fleet.Pack(a.request)
	if a.several != nil {
		return a.on(fleet).short(short)
	}
	return short
}

// Fits reports whether the gang could be placed. It does not find out what a refusal says.
func (a *Attempt) Fits(fleet *topology.Fleet) bool {
	if !a.Paid() {
		return false
	}
	placement, fits := fleet.Place(a.request)
	if fits && a.several != nil { // as many that are alike have a place
		_, fits = a.on(fleet).place()
		return fits
	}
	return fits && a.assign(placement) != nil
}

// Place places the gang, or says why it cannot.
func (a *Attempt) Place(fleet *topology.Fleet) ([]Assignment, *Refusal) {
	if refusal := a.Unpaid(fleet); refusal != nil {
		return nil, refusal
	}
	placement, short := fleet.Pack(a.request)
	if short == nil && a.several != nil { // as many that are alike have a place
		if out, fits := a.on(fleet).placeApart(); fits {
			return out, nil
		}
		return nil, a.refuse(fleet)
	}
	if short != nil {
		if short.Kind == topology.Unpayable {
			return nil, a.roomElsewhere(fleet, short.PlaceableGPUs)
		}
		return nil, a.noRoom(fleet, short)
	}
	payers := a.assign(placement)
	if payers == nil {
		return nil, a.unpayable(fleet, min(a.cover.Payable(), a.wanted-a.demand.GPUsPerPod)) // one pod at least is unpaid
	}
	align(placement.Slots, a.request.Groups, payers)
	return a.assigned(placement.Slots, payers), nil
}

// assigned returns where the missing pods go and who pays for them.
func (a *Attempt) assigned(slots []topology.Slot, payers []int) []Assignment {
	out := make([]Assignment, len(slots))
	for i, slot := range slots {
		offer := &a.cover.Offers[payers[i]]
		out[i] = Assignment{Part: a.missing[i].Part, Group: slot.Group, Node: slot.Node, Domain: slot.Domain,
			Beside: a.demand.Beside, Payer: offer.Key, Relation: offer.Relation}
		if a.several != nil {
			out[i].Beside = a.missing[i].Kind.Beside
		}
	}
	return out
}

// assign returns who pays for each slot of a placement; nil when they cannot be paid for.
func (a *Attempt) assign(placement topology.Placement) []int {
	classes := make([]int, len(placement.Slots))
	for i, slot := range placement.Slots {
		classes[i] = slot.Class
	}
	return a.cover.Assign(classes, a.spare)
}

// unpayable says why nobody pays; unless the fleet could not hold the gang at any price, which is to be known first.
func (a *Attempt) unpayable(fleet *topology.Fleet, payable int) *Refusal {
	r := a.request
	r.Purse = nil
	if _, short := fleet.Pack(r); short != nil && short.Kind != topology.NoRoom {
		return a.noRoom(fleet, short)
	}
	short := ofBudget(a.demand, a.cover, a.wanted, payable)
	short.Message += a.sparesUnpaid()
	short.Reserved = a.cover.Owes() && a.free().Payable() >= a.wanted
	return short
}

// roomElsewhere says why a gang has no place although there is room and, in all, money for it: those who pay have no
// room where they pay, or too little money for a place.
func (a *Attempt) roomElsewhere(fleet *topology.Fleet, payable int) *Refusal {
	r := a.unpayable(fleet, payable)
	if r.AboutMoney() && a.affordable() {
		r = ofPlace(a.demand, a.cover, a.wanted, payable)
	}
	if r.AboutMoney() {
		r.Message += a.sparesUnplaced(fleet)
	}
	r.Elsewhere = true
	return r
}

// affordable reports whether the gang could be paid for if all nodes were free on which somebody pays: as a whole where
// it lies in one domain, or else group by group. If there are no such nodes at all, they are what is missing.
func (a *Attempt) affordable() bool {
	unit, units := 1, len(a.missing)
	switch {
	case a.request.OneDomain:
		unit, units = units, 1
	case a.request.Confined:
		units = len(a.request.Groups)
		for i := range a.request.Groups {
			unit = max(unit, a.request.Groups[i].Pods+a.request.Groups[i].Spares)
		}
	}
	demand := make([]int, a.cover.Classes())
	for class := range demand {
		paid := sort.Search(units, func(n int) bool {
			demand[class] = (n + 1) * unit
			return !a.cover.Covers(demand)
		})
		demand[class] = paid * unit
		units -= paid
	}
	return units == 0 || len(demand) == 0
}
