package budget

import (
	"container/heap"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// holder is who holds what a charge pays for, as seen from the payer: the owner itself, its family, borrowers.
type holder int

const (
	holderOwner holder = iota
	holderFamily
	holderBorrower
	holders
)

// anybody is all of them.
var anybody = []holder{holderOwner, holderFamily, holderBorrower}

func holderOf(r rqv1.Relation) holder {
	switch r {
	case rqv1.RelationOwn:
		return holderOwner
	case rqv1.RelationSponsor:
		return holderBorrower
	}
	return holderFamily
}

// use sorts charges by what the GPUs do.
type use int

const (
	useActive use = iota
	useSpare
	useOpportunistic
	uses
)

func useOf(r rqv1.LeaseRole) use {
	switch r {
	case rqv1.RoleSpare:
		return useSpare
	case rqv1.RoleBorrowed:
		return useOpportunistic
	}
	return useActive
}

// sums are amounts of Spend by holder and use, and what opportunistic Leases held regardless of their rate.
type sums struct {
	spent [holders][uses]Spend
	held  Spend
}

func (s *sums) add(o *sums) {
	for t := range s.spent {
		for p := range s.spent[t] {
			s.spent[t][p] += o.spent[t][p]
		}
	}
	s.held += o.held
}

// of returns the sum over all uses by some holders.
func (s *sums) of(which ...holder) Spend {
	var sum Spend
	for _, t := range which {
		for p := range s.spent[t] {
			sum += s.spent[t][p]
		}
	}
	return sum
}

// all returns the whole of what was charged.
func (s *sums) all() Spend { return s.of(holderOwner, holderFamily, holderBorrower) }

// account is what is charged to one envelope. Counters answer in constant time, however much has been charged.
type account struct {
	gpus [holders][uses]int
	// owners counts the live charges that may become overdraft, by the owner of each.
	owners map[rqv1.Owner]int
	// flavors counts the same charges by flavor, as far as their Leases record it.
	flavors map[string]int
	// accrued holds what open Leases, and closed ones that are not settled, have spent in the window; held what
	// opportunistic ones among them have held.
	accrued [holders][uses]accrual
	held    accrual
	lost    losses     // with closed Leases that are not settled, in the window
	begun   beginnings // of what is open
	live    map[string]Charge
	closed  closedLeases
	lossOf  map[string]Loss // of those of the closed with which work was lost: few of many
	byEnd   aging           // of the closed
	// ends are live charges that end by themselves; endless is the weight of the others.
	ends    endings
	endless [holders]int64
	// window is the Unix time from which spending counts; 0 for ever. Settled is the part of it that is settled.
	window      int64
	settled     sums
	settledLost losses
	buckets     []Bucket // of settled spending, by start
	// over are the GPUs beyond what the envelope allows, and overdrawn the Leases that hold them, as of the last Refresh.
	over      [holders][uses]int
	overdrawn []string
}

// share is what a charge adds in a second: to what is spent, and to what opportunistic work has held.
type share struct {
	holder       holder
	use          use
	weight, held int64
}

func shareOf(c *Charge) share {
	return newShare(holderOf(c.Relation), useOf(c.Role), c.GPUs, c.Rate)
}

func newShare(t holder, p use, gpus int, rate Rate) share {
	s := share{holder: t, use: p, weight: int64(gpus) * int64(rate)}
	if p == useOpportunistic {
		s.held = int64(gpus) * int64(FullRate)
	}
	return s
}

// pastCharge is a closed Lease that is not settled. There may be a million: it is no more than what is added up.
type pastCharge struct {
	start, ended int64 // Unix time in seconds
	gpus         int32
	rate         int16
	holder, use  uint8
}

func pastOf(c *Charge, ended time.Time) pastCharge {
	return pastCharge{c.Start.Unix(), ended.Unix(), int32(c.GPUs), int16(c.Rate), uint8(holderOf(c.Relation)),
		uint8(useOf(c.Role))}
}

// share returns what the charge added in a second.
func (p *pastCharge) share() share {
	return newShare(holder(p.holder), use(p.use), int(p.gpus), Rate(p.rate))
}

func newAccount() *account {
	return &account{owners: map[rqv1.Owner]int{}, flavors: map[string]int{}, live: map[string]Charge{},
		closed: closedLeases{}, lossOf: map[string]Loss{}}
}

// windowOf returns the Unix time from which an envelope's spending counts.
func windowOf(e *rqv1.Envelope) int64 {
	if e.Start == nil {
		return 0
	}
	return max(0, e.Start.Unix())
}

// heldBy returns the GPUs of some holders that count against concurrency: opportunistic ones do not.
func (a *account) heldBy(which ...holder) int {
	n := 0
	for _, t := range which {
		n += a.gpus[t][useActive] + a.gpus[t][useSpare]
	}
	return n
}

func (a *account) inUse() int { return a.heldBy(holderOwner, holderFamily, holderBorrower) }

func (a *account) open(lease string, c *Charge) {
	a.live[lease] = *c
	a.count(c, 1)
	a.accrueOpen(c, 1)
	a.promise(c, 1)
}

// promise counts what a charge is still to spend, or no longer.
func (a *account) promise(c *Charge, by int64) {
	t := holderOf(c.Relation)
	if c.Until.IsZero() {
		a.endless[t] += by * c.weight()
	} else {
		gpus := 0
		if useOf(c.Role) != useOpportunistic { // which uses no concurrency
			gpus = c.GPUs
		}
		a.ends.add(c.Until.Unix(), t, gpus, c.weight(), int(by))
	}
}

func (a *account) void(lease string, c *Charge) {
	delete(a.live, lease)
	a.count(c, -1)
	a.accrueOpen(c, -1)
	a.promise(c, -1)
}

// accrueOpen has an open charge accrue from its start on, or with -1 takes back that it does.
func (a *account) accrueOpen(c *Charge, by int64) {
	a.accrue(shareOf(c), c.Start.Unix(), by)
	a.begun.add(c, max(c.Start.Unix(), a.window), by)
}

// accrue has a share accrue from an instant on, or no longer.
func (a *account) accrue(s share, from, by int64) {
	from = max(from, a.window)
	a.accrued[s.holder][s.use].grow(by*s.weight, from)
	if s.held != 0 {
		a.held.grow(by*s.held, from)
	}
}

func (a *account) past(lease string, c Charge, ended time.Time) {
	if a.isPast(lease) {
		return
	}
	p := pastOf(&c, ended)
	a.closed.set(lease, p)
	if c.Loss.Work != 0 {
		a.lossOf[lease] = c.Loss
	}
	heap.Push(&a.byEnd, aged{ended.Unix(), lease})
	a.accruePast(lease, p, 1)
}

// accruePast adds, or takes off, what a closed Lease spent in the window.
func (a *account) accruePast(lease string, p pastCharge, by int64) {
	a.accrue(p.share(), p.start, by)
	a.accrue(p.share(), max(p.start, p.ended), -by)
	loss, known := a.lossOf[lease]
	if known && p.ended > a.window { // what was lost was done before that
		a.lost[causeOf(loss.Cause)] += loss.Work * Spend(by)
	}
}

// noLongerPast takes a closed Lease off what is not settled.
func (a *account) noLongerPast(lease string, p pastCharge) {
	a.accruePast(lease, p, -1)
	a.closed.remove(lease)
	delete(a.lossOf, lease)
}

// forget forgets that a Lease has been closed.
func (a *account) forget(lease string) {
	if p, closed := a.closed.of(lease); closed {
		a.noLongerPast(lease, p)
	}
}

func (a *account) isPast(lease string) bool {
	_, known := a.closed.of(lease)
	return known
}

// reopen counts spending from another instant on: the window of the envelope has been edited.
func (a *account) reopen(window int64) {
	if window == a.window {
		return
	}
	a.window = window
	a.accrued, a.held, a.begun, a.lost = [holders][uses]accrual{}, accrual{}, beginnings{}, losses{}
	for _, c := range a.live {
		a.accrueOpen(&c, 1)
	}
	for lease, p := range a.closed.all() {
		a.accruePast(lease, p, 1)
	}
	a.sumSettled()
}

// spent returns what has been spent in the window until now: never less than nothing.
func (a *account) spent(now time.Time) sums {
	unix := max(now.Unix(), a.window)
	out := a.settled
	for t := range a.accrued {
		for p := range a.accrued[t] {
			out.spent[t][p] += a.accrued[t][p].at(unix)
		}
	}
	out.held += a.held.at(unix)
	late := a.begun.missing(unix)
	out.add(&late)
	return out
}

// ahead is how long, in seconds, GPU-hours are promised to work that does not say when it ends (R7).
const ahead = 3600

// horizon is how far ahead, in seconds, GPU-hours are promised at most: 20 years, so that sums of Spend stay in range.
const horizon = 20 * 365 * 24 * 3600

// promised returns what is still to be spent by what runs for some holders: until its maxDuration ends it, or for
// another hour.
func (a *account) promised(now time.Time, which ...holder) Spend {
	var sum Spend
	for _, t := range which {
		sum += Spend(a.endless[t] * ahead)
	}
	return sum + a.ends.left(now.Unix(), which)
}

// hourly returns what is spent in an hour at the present rate.
func (a *account) hourly() Spend { return a.perSecond() * 3600 }

// perSecond is what open charges of some holders, or of all, spend in a second.
func (a *account) perSecond(which ...holder) Spend {
	if len(which) == 0 {
		which = []holder{holderOwner, holderFamily, holderBorrower}
	}
	var weight int64
	for _, t := range which {
		for p := range a.accrued[t] {
			weight += a.accrued[t][p].weight
		}
	}
	return Spend(weight)
}
