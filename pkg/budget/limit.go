package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// LimitKind says what a limit bounds.
type LimitKind string

// Kinds of limits. The first two bound GPUs and GPU-hours of an envelope, and with Cap those of an aggregate cap.
const (
	Concurrency        LimitKind = "concurrency"
	GPUHours           LimitKind = "maxGPUHours"
	LendingConcurrency LimitKind = "lending.maxConcurrency"
	LendingGPUHours    LimitKind = "lending.maxGPUHours"
	MaxBorrow          LimitKind = "funding.maxBorrowGPUs"
	Window             LimitKind = "window"
	Sharing            LimitKind = "sharing"
	LendingPolicy      LimitKind = "lending"
)

// Limit is what bounds an offer, as data (R29).
type Limit struct {
	Kind LimitKind
	// Cap is the name of the aggregate cap; empty for a limit of the envelope itself.
	Cap string
	// Max is the limit and Left what may still be taken: GPUs, or Spend for GPU-hours. Left is negative in overdraft.
	Max, Left int64
}

// Hours reports whether the limit bounds GPU-hours.
func (l Limit) Hours() bool { return l.Kind == GPUHours || l.Kind == LendingGPUHours }

// String says what is left of the limit.
func (l Limit) String() string {
	name := string(l.Kind)
	if l.Cap != "" {
		name = fmt.Sprintf("aggregateCaps[%s].%s", l.Cap, strings.Replace(name, string(Concurrency), "maxConcurrency", 1))
	}
	if l.Hours() {
		return fmt.Sprintf("%s: %s of %s GPU-hours left", name, max(0, Spend(l.Left)), Spend(l.Max))
	}
	return fmt.Sprintf("%s: %d of %d GPUs left", name, max(0, l.Left), l.Max)
}

// limit is a Limit with what one pod takes from it.
type limit struct {
	Limit
	left          int64
	active, spare int64 // cost of a pod
	spares        int   // how many pods are spares
	kept          int   // pods that stay, whatever is left
}

// spareGuess says how to count the pods that a limit lets in before it is known which of them are spares: as if all
// spares were under it, or as if none were.
type spareGuess int

const (
	optimistic spareGuess = iota
	pessimistic
)

// cost is what one pod takes from the limit.
func (l *limit) cost(spare bool) int64 {
	if spare {
		return l.spare
	}
	return l.active
}

// allowed is what may be taken from the limit, with what stays anyway.
func (l *limit) allowed() int64 { return max(l.left, int64(l.kept)*l.active) }

// pods is how many pods fit under the limit.
func (l *limit) pods(guess spareGuess) int {
	left := l.allowed()
	if left <= 0 {
		return 0
	}
	if guess == pessimistic || l.spare == l.active {
		return int(left / l.active)
	}
	cheap := int64(l.spares)
	if l.spare > 0 {
		cheap = min(cheap, left/l.spare)
	}
	return int(cheap + (left-cheap*l.spare)/l.active)
}

// builder collects the offers and limits of a cover.
type builder struct {
	accounts *Accounts
	cover    *Cover
	now      time.Time
	caps     map[Key][]int // limits of aggregate caps, by Budget and name
}

// limit adds a limit on GPUs, or on GPU-hours, and returns its index.
func (b *builder) limit(l limit) int {
	ask := &b.cover.ask
	l.Left, l.spares = l.left, ask.Spares
	l.active = int64(ask.GPUsPerPod)
	l.spare = l.active
	rate := FullRate
	if ask.Opportunistic {
		rate = b.accounts.rates.Opportunistic
	}
	switch {
	case l.Kind == MaxBorrow: // whatever the GPUs do (R5)
	case ask.Opportunistic && (rate == 0 || !l.Hours()):
		l.left = unbounded * l.active
	case l.Hours():
		perSecond := int64(ask.GPUsPerPod) * lookahead(ask.MaxDuration)
		l.active, l.spare = perSecond*int64(rate), perSecond*int64(b.accounts.rates.Spare)
	}
	b.cover.limits = append(b.cover.limits, l)
	return len(b.cover.limits) - 1
}

// lookahead is for how many seconds a Run must be paid for when it starts: its maxDuration, or an hour (R7).
func lookahead(maxDuration time.Duration) int64 {
	if maxDuration <= 0 {
		return ahead
	}
	return min(int64((maxDuration+time.Second-1)/time.Second), horizon)
}

// limitsOf returns the limits over an envelope, for a payer of some relation.
func (b *builder) limitsOf(e envelope, relation rqv1.Relation) []int {
	at := b.accounts.account(e.key)
	out := []int{b.gpus(Concurrency, e.Concurrency, at.inUse())}
	if e.MaxGPUHours != nil {
		out = append(out, b.hours(GPUHours, *e.MaxGPUHours, at.committed(b.now)))
	}
	if relation == rqv1.RelationSponsor {
		if l := e.Lending; l != nil && l.MaxConcurrency != nil {
			out = append(out, b.gpus(LendingConcurrency, *l.MaxConcurrency, at.heldBy(holderBorrower)))
		}
		if l := e.Lending; l != nil && l.MaxGPUHours != nil {
			out = append(out, b.hours(LendingGPUHours, *l.MaxGPUHours, at.committed(b.now, holderBorrower)))
		}
		if b.cover.borrow >= 0 {
			out = append(out, b.cover.borrow)
		}
	}
	spec := &b.accounts.budgets[e.key.Budget].Spec
	for i := range spec.AggregateCaps {
		if c := &spec.AggregateCaps[i]; slices.Contains(c.Envelopes, e.Name) {
			out = append(out, b.capLimits(e.key.Budget, c)...)
		}
	}
	return out
}

// gpus adds a limit on GPUs of which some are used.
func (b *builder) gpus(kind LimitKind, most int32, used int) int {
	return b.limit(limit{Limit: Limit{Kind: kind, Max: int64(most)}, left: int64(most) - int64(used)})
}

// hours adds a limit on GPU-hours of which some are spent or promised.
func (b *builder) hours(kind LimitKind, most int64, committed Spend) int {
	return b.limit(limit{Limit: Limit{Kind: kind, Max: int64(hours(most))}, left: int64(hours(most) - committed)})
}

// capLimits returns the limits of an aggregate cap, which all envelopes under it share.
func (b *builder) capLimits(budget string, c *rqv1.AggregateCap) []int {
	key := Key{budget, c.Name}
	if known, ok := b.caps[key]; ok {
		return known
	}
	var out []int
	used, committed := b.accounts.under(budget, c, b.now)
	if c.MaxConcurrency != nil {
		out = append(out, b.gpus(Concurrency, *c.MaxConcurrency, used))
	}
	if c.MaxGPUHours != nil {
		out = append(out, b.hours(GPUHours, *c.MaxGPUHours, committed))
	}
	for _, l := range out {
		b.cover.limits[l].Cap = c.Name
	}
	b.caps[key] = out
	return out
}

// under returns the GPUs in use, and the Spend that is spent or promised, under an aggregate cap.
func (a *Accounts) under(budget string, c *rqv1.AggregateCap, now time.Time) (used int, committed Spend) {
	for _, name := range c.Envelopes {
		if at := a.accounts[Key{budget, name}]; at != nil {
			used += at.inUse()
			committed += at.committed(now)
		}
	}
	return used, committed
}

// committed returns what is spent or promised, by some holders or by all.
func (a *account) committed(now time.Time, which ...holder) Spend {
	if len(which) == 0 {
		which = []holder{holderOwner, holderFamily, holderBorrower}
	}
	spent := a.spent(now)
	return spent.of(which...) + a.promised(now, which...)
}

// hours turns a limit in GPU-hours into Spend.
func hours(n int64) Spend { return Spend(n) * GPUHour }

// measure works out how many pods each offer could pay for by itself, and what bounds it.
func (b *builder) measure() {
	for i := range b.cover.Offers {
		o := &b.cover.Offers[i]
		for at, l := range o.limits {
			bound := &b.cover.limits[l]
			if pods := bound.pods(optimistic); at == 0 || pods < o.Pods {
				o.Pods, o.Limit = pods, bound.Limit
			}
		}
	}
}

func compareKeys(x, y Key) int {
	return cmp.Or(strings.Compare(x.Budget, y.Budget), strings.Compare(x.Envelope, y.Envelope))
}
