package budget

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bucket is settled spending of one envelope from one window's start to the next one's (R9), in thousandths of
// GPU-seconds.
type Bucket struct {
	// Start of the window, Unix time in seconds; 0 for ever.
	Start int64 `json:"start"`
	// Spent by active ranks, spares and opportunistic work, in this order, of the owner, its family and borrowers.
	Spent [ties][parts]Spend `json:"spent"`
	// Held by opportunistic work, whatever it was charged.
	Held Spend `json:"held"`
}

// Record is the settled spending of one Budget: what remains of closed Leases when their objects go.
type Record struct {
	Budget string `json:"budget"`
	// Through is Unix time in seconds: closed Leases that ended by then are in the record, and do not count once more.
	Through int64 `json:"through"`
	// Envelopes holds each envelope's buckets by start, and Windows the start of its present window.
	Envelopes map[string][]Bucket `json:"envelopes"`
	Windows   map[string]int64    `json:"windows"`
}

// Settle folds the closed Leases of a Budget that ended by an instant into its record, and returns the record and the
// Leases that are in it for the first time. Their objects may go once the record is stored. It returns false when there
// is nothing to fold. The instant must lie before the end of every Lease that is still to be recorded as closed, at least
// a second in the past: whatever ends by then and is recorded later counts as settled.
func (a *Accounts) Settle(budget string, through time.Time) (Record, []string, bool) {
	var folded []string
	for _, k := range a.envelopesPaying(budget) {
		at := a.accounts[k]
		if through.Unix() <= at.through {
			continue
		}
		for _, lease := range slices.Sorted(maps.Keys(at.closed)) {
			if p := at.closed[lease]; p.ended.Unix() <= through.Unix() {
				at.fold(lease, p)
				folded = append(folded, lease)
			}
		}
	}
	if len(folded) == 0 {
		return Record{}, nil, false
	}
	for _, k := range a.envelopesPaying(budget) {
		a.accounts[k].through = max(a.accounts[k].through, through.Unix())
	}
	return a.Record(budget), folded, true
}

// Forget folds a closed Lease at once, because its object is gone, and returns the Budgets whose records have changed. A
// name that ends in a slash stands for all Leases whose names begin with it, as those of a namespace do.
func (a *Accounts) Forget(name string) []string {
	changed := map[string]bool{}
	for k, at := range a.accounts {
		for lease, p := range at.closed {
			if lease == name || (strings.HasSuffix(name, "/") && strings.HasPrefix(lease, name)) {
				at.fold(lease, p)
				changed[k.Budget] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// Record returns the settled spending of a Budget.
func (a *Accounts) Record(budget string) Record {
	r := Record{Budget: budget, Envelopes: map[string][]Bucket{}, Windows: map[string]int64{}}
	for _, k := range a.envelopesPaying(budget) {
		at := a.accounts[k]
		r.Through = max(r.Through, at.through)
		r.Envelopes[k.Envelope] = slices.Clone(at.buckets)
		r.Windows[k.Envelope] = at.window
	}
	return r
}

// SetRecord takes over a stored record, at the start. Closed Leases that are in it are dropped, whether they came before
// or come after.
func (a *Accounts) SetRecord(r Record) {
	for envelope, buckets := range r.Envelopes {
		k := Key{r.Budget, envelope}
		at := a.account(k)
		at.buckets, at.through = slices.Clone(buckets), r.Through
		for lease, p := range at.closed {
			if p.ended.Unix() <= r.Through {
				at.takeBack(lease)
			}
		}
		if _, known := a.find(k); !known {
			at.reopen(r.Windows[envelope])
		}
		at.sumSettled()
	}
}

// envelopesPaying returns the envelopes of a Budget that anything was ever charged to, sorted.
func (a *Accounts) envelopesPaying(budget string) []Key {
	var out []Key
	for k := range a.accounts {
		if k.Budget == budget {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(x, y Key) int { return strings.Compare(x.Envelope, y.Envelope) })
	return out
}

// fold moves a closed Lease into the buckets: to each the part that lies in its window.
func (a *account) fold(lease string, p pastCharge) {
	a.accruePast(p, -1)
	delete(a.closed, lease)
	a.bucket(0)
	a.bucket(a.window)
	begin, end := p.Start.Unix(), max(p.Start.Unix(), p.ended.Unix())
	for i := range a.buckets {
		from := max(begin, a.buckets[i].Start)
		to := end
		if i+1 < len(a.buckets) {
			to = min(to, a.buckets[i+1].Start)
		}
		if to <= from {
			continue
		}
		a.buckets[i].Spent[tieOf(p.Relation)][partOf(p.Role)] += Spend(p.weight() * (to - from))
		if partOf(p.Role) == partOpportunistic {
			a.buckets[i].Held += Spend(int64(p.GPUs) * int64(FullRate) * (to - from))
		}
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

// sumSettled adds up what is settled of the present window. What was settled before a window began is not in it, so a
// window that is edited to begin earlier than what is settled counts the buckets that begin in it.
func (a *account) sumSettled() {
	a.settled = sums{}
	for i := range a.buckets {
		if a.buckets[i].Start >= a.window {
			a.settled.add(&sums{spent: a.buckets[i].Spent, held: a.buckets[i].Held})
		}
	}
}
