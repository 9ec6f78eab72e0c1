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
	// Owed is what is kept of it for others, and so is not left, in the same unit.
	Owed Debt
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
		return fmt.Sprintf("%s: %s of %s GPU-hours left%s", name, max(0, Spend(l.Left)), Spend(l.Max), l.Reserved())
	}
	return fmt.Sprintf("%s: %d of %d GPUs left%s", name, max(0, l.Left), l.Max, l.Reserved())
}

// Reserved says what is kept of the limit, for whom and until when, and whether others may have it meanwhile, as the
// end of a sentence about it; empty where nothing is.
func (l Limit) Reserved() string {
	o := &l.Owed
	if o.Amount <= 0 {
		return ""
	}
	amount, first := fmt.Sprint(o.Amount), ""
	if l.Hours() {
		amount = Spend(o.Amount).String()
	}
	if o.Others > 0 {
		first = fmt.Sprintf(" and %d more, the first", o.Others)
	}
	if o.At.IsZero() {
		text := fmt.Sprintf(", %s reserved for Run %s%s, first in line for what its owner may spend", amount, o.To, first)
		if o.Meanwhile {
			text += fmt.Sprintf(", usable while it has no date by Runs whose maxDuration is at most %s", inMinutes(o.Within))
		}
		return text
	}
	text := fmt.Sprintf(", %s reserved for Run %s%s to start at %s", amount, o.To, first, o.At.UTC().Format(time.RFC3339))
	if o.Meanwhile {
		text += ", usable until then by Runs whose maxDuration ends earlier"
	}
	return text
}

// limit is a Limit with what one pod takes from it.
type limit struct {
	Limit
	left          int64
	active, spare int64 // cost of a pod
	spares        int   // how many pods are spares
	kept          int   // pods that stay, whatever is left
	longer        int64 // seconds for which a Run that does not say when it ends takes from it beyond the usual
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
		seconds := lookahead(ask.MaxDuration)
		if ask.MaxDuration <= 0 {
			seconds += l.longer
		}
		perSecond := int64(ask.GPUsPerPod) * seconds
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
	due := b.dues(anybody, e.key)
	out := []int{b.gpus(Concurrency, e.Concurrency, b.held(at.inUse()), due)}
	if e.MaxGPUHours != nil {
		out = append(out, b.hours(GPUHours, *e.MaxGPUHours, b.committedOn(at, anybody...), due))
	}
	if relation == rqv1.RelationSponsor {
		due := b.dues([]holder{holderBorrower}, e.key)
		if l := e.Lending; l != nil && l.MaxConcurrency != nil {
			out = append(out, b.gpus(LendingConcurrency, *l.MaxConcurrency, b.held(at.heldBy(holderBorrower)), due))
		}
		if l := e.Lending; l != nil && l.MaxGPUHours != nil {
			out = append(out, b.hours(LendingGPUHours, *l.MaxGPUHours, b.committedOn(at, holderBorrower), due))
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

// gpus adds a limit on GPUs of which some are used, and some are owed.
func (b *builder) gpus(kind LimitKind, most int32, used int, due dues) int {
	l := limit{Limit: Limit{Kind: kind, Max: int64(most)}, left: int64(most) - int64(used)}
	if len(due.owed) > 0 {
		l.Owed = due.gpus(b.now, b.ends())
		l.left -= l.Owed.Amount
	}
	return b.limit(l)
}

// ends returns when the Run has ended, if it starts now; zero when nobody knows.
func (b *builder) ends() time.Time {
	if b.cover.ask.MaxDuration <= 0 {
		return time.Time{}
	}
	return b.now.Add(b.cover.ask.MaxDuration)
}

// hours adds a limit on GPU-hours of which some are spent or promised, and some are owed. A Run that does not say when
// it ends takes from it until all is paid that is owed, and for another hour.
func (b *builder) hours(kind LimitKind, most int64, committed Spend, due dues) int {
	l := limit{Limit: Limit{Kind: kind, Max: int64(hours(most))}, left: int64(hours(most) - committed)}
	if len(due.owed) > 0 {
		l.Owed, l.longer = due.spend(b.now)
		l.left -= l.Owed.Amount
	}
	return b.limit(l)
}

// capLimits returns the limits of an aggregate cap, which all envelopes under it share.
func (b *builder) capLimits(budget string, c *rqv1.AggregateCap) []int {
	key := Key{budget, c.Name}
	if known, ok := b.caps[key]; ok {
		return known
	}
	var out []int
	used, spent, promised := b.accounts.under(budget, c, b.now)
	due := b.dues(anybody, keysOf(budget, c)...)
	if c.MaxConcurrency != nil {
		out = append(out, b.gpus(Concurrency, *c.MaxConcurrency, b.held(used), due))
	}
	if c.MaxGPUHours != nil {
		out = append(out, b.hours(GPUHours, *c.MaxGPUHours, b.committed(spent, promised), due))
	}
	for _, l := range out {
		b.cover.limits[l].Cap = c.Name
	}
	b.caps[key] = out
	return out
}

func keysOf(budget string, c *rqv1.AggregateCap) []Key {
	out := make([]Key, len(c.Envelopes))
	for i, name := range c.Envelopes {
		out[i] = Key{budget, name}
	}
	return out
}

// under returns the GPUs in use, and what is spent and promised, under an aggregate cap.
func (a *Accounts) under(budget string, c *rqv1.AggregateCap, now time.Time) (used int, spent, promised Spend) {
	for _, name := range c.Envelopes {
		if at := a.accounts[Key{budget, name}]; at != nil {
			used += at.inUse()
			spent += at.spentBy(now, anybody...)
			promised += at.promised(now, anybody...)
		}
	}
	return used, spent, promised
}

// held returns how many of some GPUs that are held count.
func (b *builder) held(gpus int) int {
	if b.cover.ask.Unheld {
		return 0
	}
	return gpus
}

// committed returns how much counts of what is spent and what is promised.
func (b *builder) committed(spent, promised Spend) Spend {
	if b.cover.ask.Unheld {
		return spent
	}
	return spent + promised
}

// committedOn returns how much counts of what is spent by some holders, or promised to them.
func (b *builder) committedOn(at *account, which ...holder) Spend {
	return b.committed(at.spentBy(b.now, which...), at.promised(b.now, which...))
}

// spentBy returns what some holders have spent.
func (a *account) spentBy(now time.Time, which ...holder) Spend {
	spent := a.spent(now)
	return spent.of(which...)
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
