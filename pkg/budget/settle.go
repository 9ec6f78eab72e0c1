package budget

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Bucket is settled spending of one envelope from one window's start to the next one's (R9), in thousandths of
// GPU-seconds.
type Bucket struct {
	// Start of the window, Unix time in seconds; 0 for ever.
	Start int64 `json:"start"`
	// Spent by active ranks, spares and opportunistic work, in this order, of the owner, its family and borrowers.
	Spent [holders][uses]Spend `json:"spent"`
	// Held by opportunistic work, whatever it was charged.
	Held Spend `json:"held"`
	// Lost work of Leases that ended by then, by its cause: Node, Program, User, Scheduler, in this order.
	Lost losses `json:"lost,omitzero"`
}

// OwnBucket returns a bucket of what is only known to be spent, not by whom: as if it were active ranks of the owner.
func OwnBucket(start int64, spent Spend) Bucket {
	b := Bucket{Start: start}
	b.Spent[holderOwner][useActive] = spent
	return b
}

// Record is the settled spending of one Budget: what remains of closed Leases when their objects go.
type Record struct {
	Budget string `json:"budget"`
	// Through is Unix time in seconds: Leases that are found closed at a start and ended by then are in the record, and do
	// not count once more.
	Through int64 `json:"through"`
	// Leases are in the record as well whenever they ended, and may still have objects: NAMESPACE/NAME.
	Leases []string `json:"leases,omitempty"`
	// Envelopes holds each envelope's buckets by start, and Windows the start of its present window.
	Envelopes map[string][]Bucket `json:"envelopes"`
	Windows   map[string]int64    `json:"windows"`
}

// Settle folds closed Leases of a Budget that ended by an instant into its record, and returns the Leases that are in
// it since the last time. Their objects may go once the record is stored; Dropped tells that one has. It returns false
// when the record is what it was. Of many it folds a portion, those that ended first: others are to have their turn
// before the next.
//
// The record speaks of no later end than that of a Lease in it, whatever the instant: a clock that jumps ahead and back
// makes nothing count as settled that is not.
func (a *Accounts) Settle(budget string, through time.Time) ([]string, bool) {
	s := a.settlingOf(budget)
	folded, stale := s.late, s.stale
	s.late, s.stale = nil, false
	folded = append(folded, a.foldEnded(budget, through, portion)...)
	folded = append(folded, a.settleEarly(s)...)
	if len(folded) == 0 && !stale {
		return nil, false
	}
	slices.Sort(folded)
	return folded, true
}

// SettleBeyond folds the closed Leases of a Budget that are more than a number, those that ended first, if they
// ended by an instant, and returns them: a portion of them, as Settle does.
func (a *Accounts) SettleBeyond(budget string, keep int, through time.Time) []string {
	beyond := a.closedOf(budget) - keep
	if beyond <= 0 {
		return nil
	}
	folded := a.foldEnded(budget, through, min(beyond, portion))
	slices.Sort(folded)
	return folded
}

// Kept returns the number of closed Leases that a Budget may keep, so that all Budgets together keep no more than a
// limit: who has fewer keeps all, and those who have more keep as many as one another.
func (a *Accounts) Kept(limit int) int {
	var counts []int
	for _, budget := range a.Payers() {
		counts = append(counts, a.closedOf(budget))
	}
	slices.Sort(counts)
	for i, n := range counts {
		if share := limit / (len(counts) - i); n > share {
			return share
		}
		limit -= n
	}
	return math.MaxInt
}

// Closed returns the number of closed Leases that are not settled.
func (a *Accounts) Closed() (n int) {
	for _, at := range a.accounts {
		n += at.closed.count()
	}
	return n
}

// closedOf returns the number of a Budget's closed Leases that are not settled.
func (a *Accounts) closedOf(budget string) (n int) {
	for _, k := range a.envelopesPaying(budget) {
		n += a.accounts[k].closed.count()
	}
	return n
}

// foldEnded folds closed Leases of a Budget that ended by an instant, a number of those that ended first.
func (a *Accounts) foldEnded(budget string, through time.Time, most int) (folded []string) {
	s := a.settlingOf(budget)
	for _, next := range a.endedBy(a.envelopesPaying(budget), through.Unix(), most) {
		if len(s.waiting) == 0 {
			s.through = 0 // what the stored record says is written over
		}
		at := a.accounts[next.payer]
		p, _ := at.closed.of(next.lease)
		at.fold(next.lease, p)
		s.settled(next.lease, p.ended)
		folded = append(folded, next.lease)
	}
	return folded
}

// Forget folds a closed Lease at once, because its object is gone, and returns the Budgets whose records have changed.
// Of one whose payer is known, ForgetOf looks at that alone.
func (a *Accounts) Forget(lease string) []string {
	changed := map[string]bool{}
	for k := range a.accounts {
		if a.ForgetOf(k, lease) {
			changed[k.Budget] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// ForgetOf folds a closed Lease of a payer, and reports whether there was one.
func (a *Accounts) ForgetOf(payer Key, lease string) bool {
	at := a.accounts[payer]
	if at == nil {
		return false
	}
	p, closed := at.closed.of(lease)
	if closed {
		at.fold(lease, p)
	}
	return closed
}

// Record returns the settled spending of a Budget.
func (a *Accounts) Record(budget string) Record {
	s := a.settlingOf(budget)
	r := Record{Budget: budget, Through: s.latest(), Leases: slices.Sorted(maps.Keys(s.early)),
		Envelopes: map[string][]Bucket{},
		Windows:   map[string]int64{}}
	for _, k := range a.envelopesPaying(budget) {
		at := a.accounts[k]
		r.Envelopes[k.Envelope] = slices.Clone(at.buckets)
		r.Windows[k.Envelope] = at.window
	}
	return r
}

// SetRecord takes over a stored record, at the start. Closed Leases that are in it are dropped, whether they came
// before or come after.
func (a *Accounts) SetRecord(r Record) {
	s := a.settlingOf(r.Budget)
	s.through = r.Through
	a.fresh.not(r.Budget)
	for _, lease := range r.Leases {
		s.early[lease] = true
	}
	for envelope, buckets := range r.Envelopes {
		k := Key{r.Budget, envelope}
		at := a.account(k)
		at.buckets = slices.Clone(buckets)
		for lease, p := range at.closed.all() {
			switch ended := p.ended; {
			case s.early[lease]:
				at.forget(lease)
			case ended <= r.Through:
				at.forget(lease)
				s.waiting[lease] = ended
			}
		}
		if _, known := a.find(k); !known {
			at.reopen(r.Windows[envelope])
		}
		at.sumSettled()
	}
}

// envelopesPaying returns the envelopes of a Budget that anything was ever charged to, sorted.
func (a *Accounts) envelopesPaying(budget string) []Key { return a.paying[budget] }

// fold moves a closed Lease into the buckets: to each the part that lies in its window.
func (a *account) fold(lease string, p pastCharge) {
	loss := a.lossOf[lease]
	a.noLongerPast(lease, p)
	a.bucket(0)
	a.bucket(a.window)
	s, begin, end := p.share(), p.start, max(p.start, p.ended)
	a.bucketOf(p.ended).Lost[causeOf(loss.Cause)] += loss.Work
	for i := range a.buckets {
		from := max(begin, a.buckets[i].Start)
		to := end
		if i+1 < len(a.buckets) {
			to = min(to, a.buckets[i+1].Start)
		}
		if to <= from {
			continue
		}
		a.buckets[i].Spent[s.holder][s.use] += Spend(s.weight * (to - from))
		a.buckets[i].Held += Spend(s.held * (to - from))
	}
	a.sumSettled()
}

// bucket makes sure that there is a bucket for a window's start.
func (a *account) bucket(start int64) {
	i, found := slices.BinarySearchFunc(a.buckets, start, func(b Bucket, s int64) int { return cmp.Compare(b.Start, s) })
	if !found {
		a.buckets = slices.Insert(a.buckets, i, Bucket{Start: start})
	}
}

// bucketOf returns the bucket of what was done until an instant: the last to begin before that.
func (a *account) bucketOf(unix int64) *Bucket {
	i := len(a.buckets) - 1
	for i > 0 && a.buckets[i].Start >= unix {
		i--
	}
	return &a.buckets[i]
}

// sumSettled adds up what is settled of the present window. What was settled before a window began is not in it, so a
// window that is edited to begin earlier than what is settled counts the buckets that begin in it.
func (a *account) sumSettled() {
	a.settled, a.settledLost = sums{}, losses{}
	for i := range a.buckets {
		if a.buckets[i].Start >= a.window {
			a.settled.add(&sums{spent: a.buckets[i].Spent, held: a.buckets[i].Held})
			a.settledLost.add(&a.buckets[i].Lost)
		}
	}
}
