package budget

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Key names one envelope of one Budget: the one payer of a Lease (R1).
type Key struct {
	Budget   string
	Envelope string
}

// String returns budget/envelope.
func (k Key) String() string { return k.Budget + "/" + k.Envelope }

// Charge is what one Lease takes from its payer.
type Charge struct {
	Payer Key
	// Owner of the Run that holds the GPUs, and Run its UID.
	Owner rqv1.Owner
	Run   string
	// Relation of the payer to the owner when the Lease was opened.
	Relation rqv1.Relation
	Role     rqv1.LeaseRole
	GPUs     int
	Rate     Rate
	// Start is when the Lease opened, and Until when the Run's maxDuration ends it; zero when it has none.
	Start, Until time.Time
	// Admitted is when the Run, or its cohort, was: before Start for a Lease that replaces another; zero for Start.
	Admitted time.Time
	// Flavor of the GPUs and Node that they are on; empty when a Lease does not tell.
	Flavor, Node string
	// Loss is the work that was lost with the Lease; none while it is open.
	Loss Loss
}

// AdmittedAt is the age by which overdraft goes (R8).
func (c *Charge) AdmittedAt() time.Time {
	if c.Admitted.IsZero() {
		return c.Start
	}
	return c.Admitted
}

// weight is what the charge adds to Spend in a second.
func (c *Charge) weight() int64 { return int64(c.GPUs) * int64(c.Rate) }

// Accounts holds the Budgets and the charges of Leases, with counters per envelope. A charge stays when its Budget is
// edited or deleted: nothing that runs is ever re-priced (R8, R9).
type Accounts struct {
	rates    Rates
	budgets  map[string]*rqv1.Budget
	family   *family           // nil when Budgets have changed since it was worked out
	charges  map[string]Charge // by Lease
	accounts map[Key]*account
	nodes    nodes
	paying   map[string][]Key // those of each Budget that anything was ever charged to, sorted
	borrowed map[string]int   // GPUs held from sponsors, by Run
	// settlings are by Budget; complete says that all that is in stored records is known.
	settlings map[string]*settling
	complete  bool
	leaving   map[string]bool // namespaces that are being deleted
	// over are the GPUs of Leases, and overdrafts those of envelopes, beyond what is allowed.
	over       map[string]int
	overdrafts map[Key]Overdraft
	fresh      freshness
}

// NewAccounts returns accounts without Budgets or charges.
func NewAccounts(rates Rates) *Accounts {
	return &Accounts{
		rates: rates, budgets: map[string]*rqv1.Budget{},
		charges: map[string]Charge{}, accounts: map[Key]*account{}, borrowed: map[string]int{},
		nodes: map[string]node{}, paying: map[string][]Key{}, settlings: map[string]*settling{},
		leaving: map[string]bool{}, over: map[string]int{}, overdrafts: map[Key]Overdraft{},
		fresh: freshness{until: map[string]time.Time{}},
	}
}

// SetBudget adds or replaces a Budget.
func (a *Accounts) SetBudget(b *rqv1.Budget) {
	a.budgets[b.Name] = b
	a.family = nil
	a.fresh.none()
	for i := range b.Spec.Envelopes {
		e := &b.Spec.Envelopes[i]
		a.account(Key{b.Name, e.Name}).reopen(windowOf(e))
	}
}

// DeleteBudget forgets a Budget. What is charged to it stays charged.
func (a *Accounts) DeleteBudget(name string) {
	delete(a.budgets, name)
	a.family = nil
	a.fresh.none()
}

// related returns who owns what and who is whose family.
func (a *Accounts) related() *family {
	if a.family == nil {
		a.family = newFamily(a.budgets)
	}
	return a.family
}

// Budget returns a Budget by name, or nil.
func (a *Accounts) Budget(name string) *rqv1.Budget { return a.budgets[name] }

// RateOf returns the price that new charges of a role are to have (R7).
func (a *Accounts) RateOf(role rqv1.LeaseRole) Rate {
	switch role {
	case rqv1.RoleSpare:
		return a.rates.Spare
	case rqv1.RoleBorrowed:
		return a.rates.Opportunistic
	}
	return FullRate
}

func (a *Accounts) account(k Key) *account {
	at := a.accounts[k]
	if at == nil {
		at = newAccount()
		a.accounts[k] = at
		i, _ := slices.BinarySearchFunc(a.paying[k.Budget], k, compareKeys)
		a.paying[k.Budget] = slices.Insert(a.paying[k.Budget], i, k)
	}
	return at
}

// Circular returns the owners that are their own ancestors together with an owner, itself among them, sorted; nil when
// it is in no circle of parents. The parents along the circle are ignored.
func (a *Accounts) Circular(owner rqv1.Owner) []rqv1.Owner {
	return slices.Clone(a.related().circular[owner])
}

// Open charges a Lease to its payer. Opening the same Lease again replaces its charge. A Lease that is recorded as
// closed is open again: it is never both.
func (a *Accounts) Open(lease string, c Charge) {
	if old, ok := a.charges[lease]; ok {
		if old == c {
			return
		}
		a.Void(lease)
	}
	a.charges[lease] = c
	a.fresh.not(c.Payer.Budget)
	at := a.account(c.Payer)
	at.forget(lease)
	at.open(lease, &c)
	if c.Relation == rqv1.RelationSponsor {
		a.borrowed[c.Run] += c.GPUs
	}
}

// Void takes a charge back as if it had never been, and returns it: a Lease that was planned and never opened. It
// returns false for a Lease that is not open.
func (a *Accounts) Void(lease string) (Charge, bool) {
	c, ok := a.charges[lease]
	if !ok {
		return Charge{}, false
	}
	delete(a.charges, lease)
	a.fresh.not(c.Payer.Budget)
	a.account(c.Payer).void(lease, &c)
	if c.Relation == rqv1.RelationSponsor {
		a.borrowed[c.Run] -= c.GPUs
		if a.borrowed[c.Run] == 0 {
			delete(a.borrowed, c.Run)
		}
	}
	return c, true
}

// Close ends a Lease: its GPUs are free, and what it spent until its end stays. It returns false for a Lease that is
// not open.
func (a *Accounts) Close(lease string, ended time.Time) (Charge, bool) {
	c, ok := a.charges[lease]
	if ok {
		a.Past(lease, c, ended)
	}
	return c, ok
}

// Past records a Lease that has been closed, and is not open any more if it was. Recording it again changes nothing,
// nor does recording what is settled.
func (a *Accounts) Past(lease string, c Charge, ended time.Time) {
	a.Void(lease)
	at, s := a.account(c.Payer), a.settlingOf(c.Payer.Budget)
	if at.isPast(lease) || s.isSettled(lease, ended.Unix(), a.complete) {
		return
	}
	at.past(lease, c, ended)
	a.fresh.not(c.Payer.Budget)
	switch {
	case s.isLate(ended.Unix()):
		p, _ := at.closed.of(lease)
		at.fold(lease, p)
		s.settled(lease, ended.Unix())
		s.late = append(s.late, lease)
	case a.Leaves(lease):
		s.going = append(s.going, goingLease{lease, c.Payer})
	}
}

// IsPast reports whether a Lease of a payer is recorded as closed.
func (a *Accounts) IsPast(lease string, payer Key) bool {
	at := a.accounts[payer]
	return at != nil && at.isPast(lease)
}

// Charge returns the charge of an open Lease.
func (a *Accounts) Charge(lease string) (Charge, bool) {
	c, ok := a.charges[lease]
	return c, ok
}

// Used returns the GPUs that open Leases hold of an envelope's concurrency.
func (a *Accounts) Used(k Key) int {
	if at := a.accounts[k]; at != nil {
		return at.inUse()
	}
	return 0
}

// Usage returns the GPUs in use by envelope, for every envelope with a charge.
func (a *Accounts) Usage() map[Key]int {
	out := map[Key]int{}
	for k, at := range a.accounts {
		if held := at.inUse(); held != 0 {
			out[k] = held
		}
	}
	return out
}

// Headroom returns how many GPUs of a flavor the envelopes of a Budget could still hold by their concurrency alone,
// beside what they owe: no Run that may go on for ever can be paid more by it.
func (a *Accounts) Headroom(budget, flavor string, owed func(Key) []Owed) int {
	b, total := a.budgets[budget], 0
	if b == nil {
		return 0
	}
	for i := range b.Spec.Envelopes {
		if e := &b.Spec.Envelopes[i]; e.Flavor == flavor {
			k := Key{budget, e.Name}
			total += max(0, int(e.Concurrency)-a.Used(k)-a.reserves(k, owed))
		}
	}
	return total
}

// Spent returns what has been spent in each envelope's window until now, for every envelope with a charge, open or
// past.
func (a *Accounts) Spent(now time.Time) map[Key]Spend {
	out := map[Key]Spend{}
	for k, at := range a.accounts {
		if spent := at.spent(now); spent.all() != 0 {
			out[k] = spent.all()
		}
	}
	return out
}

// Payers returns the Budgets that anything was ever charged to, sorted.
func (a *Accounts) Payers() []string { return slices.Sorted(maps.Keys(a.paying)) }

// SelectorKeys returns the label keys that some envelope's selector mentions, sorted.
func (a *Accounts) SelectorKeys() []string {
	keys := map[string]bool{}
	for _, b := range a.budgets {
		for i := range b.Spec.Envelopes {
			for key := range b.Spec.Envelopes[i].Selector {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// NextWindow returns the next instant after now at which some envelope's window opens or closes; false if none does.
func (a *Accounts) NextWindow(now time.Time) (time.Time, bool) {
	var next time.Time
	for _, b := range a.budgets {
		for i := range b.Spec.Envelopes {
			e := &b.Spec.Envelopes[i]
			for _, edge := range []*metav1.Time{e.Start, e.End} {
				if edge != nil && edge.After(now) && (next.IsZero() || edge.Time.Before(next)) {
					next = edge.Time
				}
			}
		}
	}
	return next, !next.IsZero()
}

// envelope is a candidate payer together with its Budget.
type envelope struct {
	key   Key
	owner rqv1.Owner
	*rqv1.Envelope
}

// envelopesOf returns the envelopes of a flavor of some owners, in the order in which they pay within one step (R2).
func (a *Accounts) envelopesOf(owners []rqv1.Owner, flavor string) []envelope {
	var out []envelope
	for _, owner := range owners {
		for _, name := range a.related().budgets[owner] {
			b := a.budgets[name]
			for i := range b.Spec.Envelopes {
				if e := &b.Spec.Envelopes[i]; e.Flavor == flavor {
					out = append(out, envelope{Key{name, e.Name}, owner, e})
				}
			}
		}
	}
	slices.SortFunc(out, payerOrder)
	return out
}

// FirstPayer returns the Budget that is asked first to pay for an owner's GPUs of a flavor; empty where its family has
// none.
func (a *Accounts) FirstPayer(owner rqv1.Owner, flavor string) string {
	for _, s := range a.related().steps(owner) {
		if paying := a.envelopesOf(s.owners, flavor); len(paying) > 0 {
			return paying[0].key.Budget
		}
	}
	return ""
}

// find returns an envelope by its key; false when the Budget has none of the name.
func (a *Accounts) find(k Key) (envelope, bool) {
	b := a.budgets[k.Budget]
	if b == nil {
		return envelope{}, false
	}
	for i := range b.Spec.Envelopes {
		if e := &b.Spec.Envelopes[i]; e.Name == k.Envelope {
			return envelope{k, b.Spec.Owner, e}, true
		}
	}
	return envelope{}, false
}
