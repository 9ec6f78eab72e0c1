// Package budget knows the Budgets and what is charged to them, and decides who pays (rules R1 to R3). It is pure: time
// is a parameter, and callers lock.
package budget

import (
	"cmp"
	"maps"
	"slices"
	"strings"
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

// Charge is what one open Lease takes from its payer.
type Charge struct {
	Payer Key
	// Owner of the Run that holds the GPUs.
	Owner rqv1.Owner
	GPUs  int
	Role  rqv1.LeaseRole
}

// Accounts holds the Budgets and the charges of open Leases, with a counter per envelope. A charge stays when its Budget
// is edited or deleted: nothing that runs is ever re-priced (R8, R9).
type Accounts struct {
	budgets map[string]*rqv1.Budget
	charges map[string]Charge
	used    map[Key]int
}

// NewAccounts returns accounts without Budgets or charges.
func NewAccounts() *Accounts {
	return &Accounts{budgets: map[string]*rqv1.Budget{}, charges: map[string]Charge{}, used: map[Key]int{}}
}

// SetBudget adds or replaces a Budget.
func (a *Accounts) SetBudget(b *rqv1.Budget) { a.budgets[b.Name] = b }

// DeleteBudget forgets a Budget. What is charged to it stays charged.
func (a *Accounts) DeleteBudget(name string) { delete(a.budgets, name) }

// Budget returns a Budget by name, or nil.
func (a *Accounts) Budget(name string) *rqv1.Budget { return a.budgets[name] }

// Open charges a Lease to its payer. Opening the same Lease again changes nothing.
func (a *Accounts) Open(lease string, c Charge) {
	if _, ok := a.charges[lease]; ok {
		return
	}
	a.charges[lease] = c
	a.used[c.Payer] += c.GPUs
}

// Close gives a Lease's charge back and returns it. Closing a Lease that is not open returns false.
func (a *Accounts) Close(lease string) (Charge, bool) {
	c, ok := a.charges[lease]
	if !ok {
		return Charge{}, false
	}
	delete(a.charges, lease)
	if a.used[c.Payer] -= c.GPUs; a.used[c.Payer] == 0 {
		delete(a.used, c.Payer)
	}
	return c, true
}

// Used returns the GPUs that open Leases charge to an envelope.
func (a *Accounts) Used(k Key) int { return a.used[k] }

// Usage returns the GPUs in use by envelope, for every envelope with a charge.
func (a *Accounts) Usage() map[Key]int { return maps.Clone(a.used) }

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

// Status returns the usage of a Budget's envelopes, in the Budget's own order.
func (a *Accounts) Status(b *rqv1.Budget) []rqv1.EnvelopeStatus {
	out := make([]rqv1.EnvelopeStatus, 0, len(b.Spec.Envelopes))
	for i := range b.Spec.Envelopes {
		e := &b.Spec.Envelopes[i]
		used := a.used[Key{b.Name, e.Name}]
		out = append(out, rqv1.EnvelopeStatus{
			Name:          e.Name,
			OwnedGPUs:     int32(used),
			OverdraftGPUs: int32(max(0, used-int(e.Concurrency))),
			HeadroomGPUs:  int32(max(0, int(e.Concurrency)-used)),
		})
	}
	return out
}

// envelope is a candidate payer together with its Budget.
type envelope struct {
	key   Key
	owner rqv1.Owner
	*rqv1.Envelope
}

// ofOwner returns the owner's own envelopes of a flavor in the order in which they pay (R2): earliest end first, then by
// Budget and envelope name.
func (a *Accounts) ofOwner(owner rqv1.Owner, flavor string) []envelope {
	var out []envelope
	for name, b := range a.budgets {
		if b.Spec.Owner != owner {
			continue
		}
		for i := range b.Spec.Envelopes {
			if e := &b.Spec.Envelopes[i]; e.Flavor == flavor {
				out = append(out, envelope{Key{name, e.Name}, owner, e})
			}
		}
	}
	slices.SortFunc(out, func(x, y envelope) int {
		return cmp.Or(compareEnd(x.Envelope, y.Envelope), strings.Compare(x.key.Budget, y.key.Budget),
			strings.Compare(x.key.Envelope, y.key.Envelope))
	})
	return out
}

func compareEnd(x, y *rqv1.Envelope) int {
	switch {
	case x.End == nil && y.End == nil:
		return 0
	case x.End == nil:
		return 1
	case y.End == nil:
		return -1
	}
	return x.End.Compare(y.End.Time)
}
