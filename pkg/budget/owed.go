package budget

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Owed is what an envelope is to pay for a Run that waits and has a date, or is the first of its owner's line. It is
// kept from those who come after that Run, since money that is spent cannot be brought back by cuts (R18).
type Owed struct {
	// Run is whose it is, as namespace/name, and At its date; zero where nobody knows when there is enough for it.
	Run string
	At  time.Time
	// First says that the Run is the first of its owner's line, and the envelope its owner's: it is kept however far off
	// the date is, and where there is none from all who do not end Within an instant (R54).
	First  bool
	Within time.Duration
	// GPUs that it is to hold, at what Rate, and what the payer is to its owner. Several envelopes may each owe all that
	// the first of a line wants, since nobody knows which of them has it first: together they owe no more.
	GPUs     int
	Wants    int
	Rate     Rate
	Relation rqv1.Relation
	// MaxDuration is how long it holds them at most; 0 when it does not say.
	MaxDuration time.Duration
	// Goes is when it makes room for another that comes first too, as is certain; zero where nobody knows.
	Goes time.Time
}

// CompareOwed orders what is owed by date, and by Run.
func CompareOwed(x, y Owed) int {
	return cmp.Or(x.At.Compare(y.At), strings.Compare(x.Run, y.Run))
}

// OwedAt returns those of what is owed, in order of date, that is kept at an instant: whose dates are no further off
// than a horizon, or that is kept however far off these are.
func OwedAt(owed []Owed, at time.Time, horizon time.Duration) []Owed {
	last := at.Add(horizon)
	n := sort.Search(len(owed), func(i int) bool { return owed[i].At.After(last) })
	out := owed[:n:n]
	for i := range owed[n:] {
		if o := &owed[n+i]; o.First {
			out = append(out, *o)
		}
	}
	return out
}

// Dateless reports whether nobody knows when there is enough for the Run.
func (o *Owed) Dateless() bool { return o.At.IsZero() }

// by returns until when GPU-hours are to last for the Run to start: its date, or as long as others may have its GPUs.
func (o *Owed) by(now time.Time) time.Time {
	if o.Dateless() {
		return now.Add(o.Within)
	}
	return o.At
}

// Debt is how much of a limit is kept for Runs that have dates and come first, as data (R29).
type Debt struct {
	// Amount in GPUs, or in Spend; 0 where nothing is kept.
	Amount int64
	// To is the Run with the first date, as namespace/name, At that date, and Others how many more Runs there are. It is
	// zero where none of them has one: To is the first of its owner's line then.
	To     string
	At     time.Time
	Others int
	// Meanwhile says that a Run may have it which has ended by then. Where there is no date it may for as long as Within.
	Meanwhile bool
	Within    time.Duration
}

// dues is what some envelopes owe together to those who come before a Run.
type dues struct {
	owed  []Owed // by date
	which []holder
	of    []*account
}

// dues returns what is owed by some envelopes, for GPUs that some holders hold.
func (b *builder) dues(which []holder, keys ...Key) dues {
	ask := &b.cover.ask
	if ask.Owed == nil || ask.Opportunistic && b.accounts.rates.Opportunistic == 0 {
		return dues{}
	}
	return b.accounts.dues(ask.Owed, which, keys...)
}

func (a *Accounts) dues(owed func(Key) []Owed, which []holder, keys ...Key) dues {
	d := dues{which: which}
	for i, k := range keys {
		of := owed(k)
		if i == 0 && len(which) == len(anybody) {
			d.owed = of[:len(of):len(of)] // which is in order
			continue
		}
		for _, o := range of {
			if slices.Contains(which, holderOf(o.Relation)) {
				d.owed = append(d.owed, o)
			}
		}
	}
	if len(d.owed) == 0 {
		return d
	}
	if len(keys) > 1 {
		d.owed = asWanted(slices.SortedStableFunc(slices.Values(d.owed), CompareOwed))
	}
	for _, k := range keys {
		if at := a.accounts[k]; at != nil {
			d.of = append(d.of, at)
		}
	}
	return d
}

// asWanted has several envelopes together owe the first of a line no more than it wants.
func asWanted(owed []Owed) []Owed {
	given, out := map[string]int{}, owed[:0]
	for _, o := range owed {
		if o.First {
			o.GPUs = min(o.GPUs, o.Wants-given[o.Run])
			given[o.Run] += o.GPUs
		}
		if o.GPUs > 0 {
			out = append(out, o)
		}
	}
	return out
}

// reserves returns how many GPUs an envelope keeps for those whom it owes something, from all who may go on for ever.
func (a *Accounts) reserves(k Key, owed func(Key) []Owed) int {
	if owed == nil {
		return 0
	}
	due := a.dues(owed, anybody, k)
	return int(due.gpus(time.Time{}, time.Time{}).Amount)
}

// gpus returns how many GPUs are kept from a Run that has ended by an instant, or that may run for ever where that is
// zero. Who has a date after that end gets them back in time. What ends by itself before a date is there for it.
func (d *dues) gpus(now, end time.Time) Debt {
	n := sort.Search(len(d.owed), func(i int) bool { return !d.owed[i].Dateless() })
	out := d.dated(d.owed[n:], now, end)
	for i := n - 1; i >= 0; i-- {
		o := &d.owed[i]
		if !end.IsZero() && !end.After(now.Add(o.Within)) {
			continue
		}
		more := out.Others
		if out.Amount > 0 && out.To != o.Run {
			more++
		}
		out = Debt{Amount: out.Amount + int64(o.GPUs), To: o.Run, Others: more, Within: o.Within,
			Meanwhile: more == 0 && o.Within >= shortest}
	}
	return out
}

// dated returns how much of what is owed to those who have dates is kept from such a Run.
func (d *dues) dated(owed []Owed, now, end time.Time) Debt {
	if !end.IsZero() {
		owed = owed[:sort.Search(len(owed), func(i int) bool { return !owed[i].At.Before(end) })]
	}
	if len(owed) == 0 {
		return Debt{}
	}
	free := make([]int, len(owed)+1) // what ends after the date before, up to each date
	ends := func(unix int64, gpus int) {
		free[sort.Search(len(owed), func(i int) bool { return owed[i].At.Unix() >= unix })] += gpus
	}
	for _, at := range d.of {
		for i := range at.ends.list {
			e := &at.ends.list[i]
			for _, t := range d.which {
				ends(e.unix, e.gpus[t])
			}
		}
	}
	for i := range owed {
		o := &owed[i]
		if until := o.until(); !until.IsZero() {
			ends(until.Add(time.Second-1).Unix(), o.GPUs)
		}
	}
	out, left, first, last := Debt{}, 0, 0, -1
	for i := range owed {
		left += owed[i].GPUs - free[i]
		if left <= 0 {
			continue
		}
		if last < 0 {
			out.To, out.At, first, last = owed[i].Run, owed[i].At, i, i
		}
		if int64(left) > out.Amount {
			out.Amount, last = int64(left), i
		}
	}
	out.Others, out.Meanwhile = others(owed[first:last+1]), !out.At.Before(now.Add(shortest))
	return out
}

// until returns from when on a Run has no GPUs any more; zero where nobody knows. Who goes for another does so once
// that one has been found to be payable, and so has them at that one's date.
func (o *Owed) until() (end time.Time) {
	if o.MaxDuration > 0 {
		end = o.At.Add(o.MaxDuration)
	}
	if gone := o.Goes.Add(1); !o.Goes.IsZero() && (end.IsZero() || gone.Before(end)) {
		end = gone
	}
	return end
}

// seconds returns for how long a Run has to be paid for, if it begins on its date and has to be payable until an
// instant and for as long as anybody who begins then. What it leaves when it goes for another does not come back.
func (o *Owed) seconds(last, now time.Time) int64 {
	out := lookahead(o.MaxDuration)
	if o.MaxDuration > 0 {
		return out
	}
	if !o.Goes.IsZero() && o.Goes.Before(last) {
		last = o.Goes
	}
	return out + min(max(0, secondsUntil(last, o.by(now))), horizon)
}

// shortest is the shortest maxDuration that anybody is advised to set.
const shortest = time.Minute

// spend returns how much of GPU-hours is kept, as of the last of the dates, and how many seconds that is away. What a
// Run has spent that ends before does not come back.
func (d *dues) spend(now time.Time) (kept Debt, ahead int64) {
	if len(d.owed) == 0 {
		return Debt{}, 0
	}
	var last time.Time
	for i := range d.owed {
		if at := d.owed[i].by(now); at.After(last) {
			last = at
		}
	}
	ahead = min(max(0, secondsUntil(last, now)), horizon)
	kept = Debt{To: d.owed[0].Run, At: d.owed[0].At, Others: others(d.owed), Within: d.owed[0].Within}
	for i := range d.owed {
		o := &d.owed[i]
		kept.Amount += int64(o.GPUs) * int64(o.Rate) * o.seconds(last, now)
	}
	for _, at := range d.of {
		for _, t := range d.which {
			kept.Amount += at.endless[t] * ahead // which those spend until then who run
		}
	}
	return kept, ahead
}

func secondsUntil(at, now time.Time) int64 {
	return int64((at.Sub(now) + time.Second - 1) / time.Second)
}

// others returns how many Runs something is owed to after the first.
func others(owed []Owed) (n int) {
	for i := range owed {
		if i > 0 && owed[i].Run != owed[i-1].Run {
			n++
		}
	}
	return n
}

// Owes reports whether anything is kept for others of what there is.
func (c *Cover) Owes() bool {
	return slices.ContainsFunc(c.limits, func(l limit) bool { return l.Owed.Amount > 0 })
}

// Dates returns the dates, sorted, of those to whom envelopes owe something that take part.
func (c *Cover) Dates(owed func(Key) []Owed) []time.Time {
	if owed == nil {
		return nil
	}
	var out []time.Time
	for i := range c.Offers {
		if o := &c.Offers[i]; o.Refusal != "" && o.Opens.IsZero() {
			continue
		}
		for _, o := range owed(c.Offers[i].Key) {
			if !o.Dateless() {
				out = append(out, o.At)
			}
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return slices.CompactFunc(out, time.Time.Equal)
}
