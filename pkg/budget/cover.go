package budget

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget/internal/payflow"
)

// Ask is what a Run asks to be paid for.
type Ask struct {
	Owner      rqv1.Owner
	Flavor     string
	GPUsPerPod int
	// Spares is how many of the pods are spares, which cost less.
	Spares int
	// Opportunistic work uses no concurrency, and GPU-hours at a rate of its own (R7).
	Opportunistic bool
	// Run is the UID of the Run, for what it has borrowed already, and Funding says from whom it may borrow (R2, R5).
	Run     string
	Funding *rqv1.RunFunding
	// MaxDuration is how long the Run takes at most; 0 when it does not say.
	MaxDuration time.Duration
	// Kept are pods of a running Run that envelopes pay for and that are being replaced: these go on paying, whatever they
	// allow by now (R8).
	Kept map[Key]Kept
	// Owed returns what an envelope owes to Runs that come first, in order of date: that is kept from this one (R18). It
	// is nil where nothing is.
	Owed func(Key) []Owed
	// Unheld asks what would be paid for if nobody held anything: GPU-hours that are spent stay spent. Ever has windows
	// that are still to open count as open. Alone asks what the owner's own envelopes would pay for.
	Unheld, Ever, Alone bool
}

// Kept are pods that an envelope pays for and that are being replaced, and what it was to the Run's owner when they
// were opened.
type Kept struct {
	Pods     int
	Relation rqv1.Relation
}

// Offer is what one envelope can do for a Run: how many of its pods it could pay for, or why it pays for none.
type Offer struct {
	Key      Key
	Owner    rqv1.Owner
	Relation rqv1.Relation
	// Step of the order in which envelopes pay, from 0 (R2).
	Step int
	// Concurrency is the envelope's cap and Used what is charged to it, in GPUs.
	Concurrency, Used int
	// Pods that it could pay for by itself, whole pods only (R1), and Limit what bounds them.
	Pods  int
	Limit Limit
	// Refusal says why it does not take part at all; empty when it does.
	Refusal string
	// Untold is true of an envelope that a sponsor does not lend from: what its owner has is not told to whoever names
	// it as a sponsor. That the owner does not lend is told by an offer of its own, without a Key.
	Untold bool
	// Opens is when the window opens, for an envelope that is refused because it has not yet.
	Opens time.Time
	// Closes is when the window closes; zero for one that does not, or has closed.
	Closes time.Time

	selector map[string]string
	limits   []int // of the cover, that bound this offer
}

// Cover answers, for one Run at one instant, what can be paid for and by whom. It is a topology.Purse, so that pack
// never looks where nobody pays (R3). It is valid until the accounts change.
type Cover struct {
	Offers  []Offer
	ask     Ask
	limits  []limit
	borrow  int     // the limit that is the Run's own: maxBorrowGPUs; -1 when it has none
	classes [][]int // offers that pay on nodes of the class, in order of R2
	payers  *payflow.Payers
	pods    []int // that each limit lets in, kept between calls
}

// Cover returns what envelopes offer for a Run, in the order in which they pay: the owner's own, its siblings', its
// ancestors', then the Run's sponsors' (R2).
func (a *Accounts) Cover(ask Ask, now time.Time) *Cover {
	c := &Cover{ask: ask, borrow: -1}
	steps := a.related().steps(ask.Owner)
	if ask.Alone {
		steps, ask.Funding = steps[:1], nil
	}
	b := &builder{accounts: a, cover: c, now: now, caps: map[Key][]int{}}
	for n, s := range steps {
		for _, e := range a.envelopesOf(s.owners, ask.Flavor) {
			b.offer(e, s.relation, n)
		}
	}
	n := len(steps)
	if f := ask.Funding; f != nil && f.AllowBorrow {
		if f.MaxBorrowGPUs != nil {
			c.borrow = b.gpus(MaxBorrow, *f.MaxBorrowGPUs, b.held(a.borrowed[ask.Run]), dues{})
		}
		for i, sponsor := range f.Sponsors {
			if !slices.Contains(f.Sponsors[:i], sponsor) {
				b.sponsor(sponsor, n+i)
			}
		}
		n += len(f.Sponsors)
	}
	b.keep(n)
	b.measure()
	over := make([][]int, len(c.Offers))
	for i := range c.Offers {
		over[i] = c.Offers[i].limits
	}
	c.payers = payflow.New(len(c.limits), over)
	return c
}

// room returns how many pods each limit lets in; the answer is valid until the next call.
func (c *Cover) room(spares spareGuess) []int {
	c.pods = slices.Grow(c.pods[:0], len(c.limits))[:len(c.limits)]
	for i := range c.limits {
		c.pods[i] = c.limits[i].pods(spares)
	}
	return c.pods
}

// sponsor adds the envelopes of a sponsor that have not been offered within the family. One that lends nothing is told
// of in the same words, whether it has envelopes or not.
func (b *builder) sponsor(owner rqv1.Owner, step int) {
	relation, family := b.accounts.related().relation(b.cover.ask.Owner, owner)
	asked, lends := !family, false
	for _, e := range b.accounts.envelopesOf([]rqv1.Owner{owner}, b.cover.ask.Flavor) {
		if !family || (e.Sharing == rqv1.SharingNone && relation != rqv1.RelationOwn) {
			asked = true
			lends = lends || lendsTo(e.Lending, b.cover.ask.Owner)
			b.offer(e, rqv1.RelationSponsor, step)
		}
	}
	if asked && !lends {
		o := Offer{Owner: owner, Relation: rqv1.RelationSponsor, Step: step}
		b.unlent(&o)
		b.cover.Offers = append(b.cover.Offers, o)
	}
}

// unlent has an offer say that a sponsor does not lend.
func (b *builder) unlent(o *Offer) {
	o.Limit.Kind = LendingPolicy
	o.Refusal = fmt.Sprintf("it does not lend to %s", b.cover.ask.Owner)
}

// lendsTo reports whether a lending policy lets a borrower have anything (R4).
func lendsTo(l *rqv1.Lending, borrower rqv1.Owner) bool {
	return l != nil && l.Allow && Admits(l.To, borrower)
}

// offer adds an envelope with all the limits over it. Whom it serves is asked first: when it would pay is told to
// nobody else, and is no date to wait for.
func (b *builder) offer(e envelope, relation rqv1.Relation, step int) {
	o := Offer{Key: e.key, Owner: e.owner, Relation: relation, Step: step, Concurrency: int(e.Concurrency),
		Used: b.accounts.Used(e.key), selector: e.Selector}
	if e.End != nil && b.now.Before(e.End.Time) {
		o.Closes = e.End.Time
	}
	switch {
	case relation == rqv1.RelationSponsor && !lendsTo(e.Lending, b.cover.ask.Owner):
		o.Untold = true
		b.unlent(&o)
	case (relation == rqv1.RelationSibling || relation == rqv1.RelationAncestor) && e.Sharing == rqv1.SharingNone:
		o.Limit.Kind = Sharing
		o.Refusal = "it is not shared with the family"
	case e.Start != nil && b.now.Before(e.Start.Time) && !b.cover.ask.Ever:
		o.Limit.Kind, o.Opens = Window, e.Start.Time
		o.Refusal = "its window opens at " + e.Start.UTC().Format(time.RFC3339)
	case e.End != nil && !b.now.Before(e.End.Time):
		o.Limit.Kind = Window
		o.Refusal = "its window closed at " + e.End.UTC().Format(time.RFC3339)
	default:
		o.limits = b.limitsOf(e, relation)
	}
	b.cover.Offers = append(b.cover.Offers, o)
}

// keep has the payers of pods that are being replaced go on paying for as many.
func (b *builder) keep(step int) {
	for _, k := range slices.SortedFunc(maps.Keys(b.cover.ask.Kept), compareKeys) {
		pods := b.cover.ask.Kept[k].Pods
		o := b.keeper(k, step)
		if o.Refusal != "" {
			b.revive(o, pods)
		}
		for _, l := range o.limits {
			b.cover.limits[l].kept += pods
		}
	}
}

// keeper returns the offer of an envelope that paid for pods which are being replaced: the one that takes part, if any,
// or else a refused one, which is added if there is none. Nothing is known of the owner of a Budget that is gone; what
// it was to the Run's owner it still is.
func (b *builder) keeper(k Key, step int) *Offer {
	c, found := b.cover, -1
	for i := range c.Offers {
		if c.Offers[i].Key == k && (found < 0 || c.Offers[found].Refusal != "") {
			found = i
		}
	}
	if found < 0 {
		o := Offer{Key: k, Relation: rqv1.RelationSponsor, Step: step, Used: b.accounts.Used(k),
			Refusal: "it no longer pays"}
		if e, ok := b.accounts.find(k); ok {
			o.Owner, o.Concurrency, o.selector = e.owner, int(e.Concurrency), e.Selector
			if relation, family := b.accounts.related().relation(c.ask.Owner, e.owner); family {
				o.Relation = relation
			}
		}
		o.Relation = cmp.Or(c.ask.Kept[k].Relation, o.Relation)
		c.Offers = append(c.Offers, o)
		found = len(c.Offers) - 1
	}
	return &c.Offers[found]
}

// revive has a refused offer pay for pods that it paid for before, and no more. What it pays for counts under the
// limits that others share with it.
func (b *builder) revive(o *Offer, pods int) {
	o.Refusal, o.Untold, o.Opens = "", false, time.Time{}
	o.limits = []int{b.limit(limit{Limit: Limit{Kind: Concurrency, Max: int64(pods * b.cover.ask.GPUsPerPod)}})}
	if e, ok := b.accounts.find(o.Key); ok {
		o.limits = append(o.limits, b.limitsOf(e, o.Relation)...)
	} else if o.Relation == rqv1.RelationSponsor && b.cover.borrow >= 0 {
		o.limits = append(o.limits, b.cover.borrow)
	}
}

// Covers reports whether the offers can pay for demand[class] pods on nodes of every class at once. It takes as many of
// them for spares as the Run has, since it is not told which they are; Assign is exact.
func (c *Cover) Covers(demand []int) bool {
	_, covered := c.payers.Share(c.classes, demand, c.room(optimistic))
	return covered
}

// Payable returns how many GPUs the offers could pay for, wherever their selectors allow.
func (c *Cover) Payable() int {
	return c.payers.Total(c.room(optimistic)) * c.ask.GPUsPerPod
}

// Dry returns the Budgets, sorted, whose limits on GPU-hours let in fewer GPUs than are wanted.
func (c *Cover) Dry(wanted int) []string {
	var out []string
	for i := range c.Offers {
		o := &c.Offers[i]
		if o.Key != (Key{}) && slices.ContainsFunc(o.limits, func(l int) bool {
			return c.limits[l].Hours() && c.limits[l].pods(optimistic)*c.ask.GPUsPerPod < wanted
		}) {
			out = append(out, o.Key.Budget)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CountsHours reports whether any limit is one on GPU-hours, so that time alone may leave less.
func (c *Cover) CountsHours() bool {
	return slices.ContainsFunc(c.limits, func(l limit) bool { return l.Hours() })
}

// BorrowLimit returns the Run's own maxBorrowGPUs, and whether it is all that keeps a number of GPUs from being paid
// for.
func (c *Cover) BorrowLimit(wanted int) (Limit, bool) {
	if c.borrow < 0 || c.Payable() >= wanted {
		return Limit{}, false
	}
	l := &c.limits[c.borrow]
	left := l.left
	l.left = unbounded
	defer func() { l.left = left }()
	return l.Limit, c.Payable() >= wanted
}

// Assign chooses the payer of every pod, as an index of Offers, given the class of each pod's node and whether it is a
// spare, in order of group: earlier offers pay as much as they can without leaving others unpaid, and for the earlier
// pods (R2, R6). It returns nil if the pods cannot be covered.
//
// What it returns keeps every limit to the GPU-second. It is the best there is, and found whenever there is any, as
// long as no limit on GPU-hours tells spares from other pods; where one does, that holds for one payer and one class of
// nodes, and elsewhere a payment may be missed that would hardly do.
func (c *Cover) Assign(classes []int, spare []bool) []int {
	demand, spares := make([]int, len(c.classes)), 0
	for pod, class := range classes {
		if class < 0 || class >= len(demand) {
			return nil
		}
		demand[class]++
		if spare[pod] {
			spares++
		}
	}
	c.expect(spares)
	defer c.expect(c.ask.Spares)
	for _, guess := range []spareGuess{optimistic, pessimistic} {
		sent, covered := c.payers.Share(c.classes, demand, c.room(guess))
		if !covered {
			continue
		}
		if payers := assignEach(classes, sent); c.within(payers, spare) {
			return payers
		}
	}
	return c.pick(classes, spare)
}

// expect has limits count with a number of spares.
func (c *Cover) expect(spares int) {
	for i := range c.limits {
		c.limits[i].spares = spares
	}
}

// assignEach returns the offer that pays for each pod, of so many by class and offer: earlier offers for earlier pods.
func assignEach(classes []int, sent [][]int) []int {
	payers := make([]int, 0, len(classes))
	next := make([]int, len(sent))
	for _, class := range classes {
		for sent[class][next[class]] == 0 {
			next[class]++
		}
		sent[class][next[class]]--
		payers = append(payers, next[class])
	}
	return payers
}

// within reports whether every limit is kept, to the GPU-second.
func (c *Cover) within(payers []int, spare []bool) bool {
	left := c.allowed()
	for pod, offer := range payers {
		if !c.charge(left, offer, spare[pod]) {
			return false
		}
	}
	return true
}

// pick has each pod paid for by the first offer that still can.
func (c *Cover) pick(classes []int, spare []bool) []int {
	left := c.allowed()
	payers := make([]int, 0, len(classes))
	for pod, class := range classes {
		i := slices.IndexFunc(c.classes[class], func(offer int) bool { return c.charge(left, offer, spare[pod]) })
		if i < 0 {
			return nil
		}
		payers = append(payers, c.classes[class][i])
	}
	return payers
}

// allowed returns what may be taken from each limit.
func (c *Cover) allowed() []int64 {
	left := make([]int64, len(c.limits))
	for i := range c.limits {
		left[i] = c.limits[i].allowed()
	}
	return left
}

// charge takes a pod from the limits over an offer, and reports false if they do not let it in.
func (c *Cover) charge(left []int64, offer int, spare bool) bool {
	limits := c.Offers[offer].limits
	for _, l := range limits {
		if left[l] < c.limits[l].cost(spare) {
			return false
		}
	}
	for _, l := range limits {
		left[l] -= c.limits[l].cost(spare)
	}
	return true
}
