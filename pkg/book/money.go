package book

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// SetBudget adds or replaces a Budget, for the gangs that wait for somebody to be able to pay.
func (b *Book) SetBudget(budget *rqv1.Budget) {
	b.mu.Lock()
	defer b.unlock()
	if old := b.accounts.Budget(budget.Name); old != nil && old.Generation == budget.Generation && old.UID == budget.UID {
		return // only the status has changed
	}
	b.accounts.SetBudget(budget)
	b.fleet.SetSelectorKeys(b.accounts.SelectorKeys())
	b.wakePayers()
}

// DeleteBudget forgets a Budget; what it pays for goes on.
func (b *Book) DeleteBudget(name string) {
	b.mu.Lock()
	defer b.unlock()
	b.accounts.DeleteBudget(name)
	b.fleet.SetSelectorKeys(b.accounts.SelectorKeys())
	b.wakePayers() // whose family it was in has another now
}

// RefreshBudgets assigns the overdraft as of an instant. Runs whose share of it has changed are looked at.
func (b *Book) RefreshBudgets(now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	for _, name := range b.accounts.Refresh(now) {
		namespace, lease, _ := strings.Cut(name, "/")
		if l := b.leases[types.NamespacedName{Namespace: namespace, Name: lease}]; l != nil {
			b.reconcile(l.run)
		}
	}
}

// BudgetReport is what a Budget's status is made from.
type BudgetReport struct {
	Status     rqv1.BudgetStatus
	Overdrafts []budget.Overdraft
	// Circle is the circle of parents that the Budget's owner is in; nil when it is in none.
	Circle []rqv1.Owner
}

// BudgetReport returns the usage of a Budget, with the overdraft as of the last refresh; false for one that the book does not know
// yet, or not any more.
func (b *Book) BudgetReport(of *rqv1.Budget, now time.Time) (BudgetReport, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accounts.Budget(of.Name) == nil {
		return BudgetReport{}, false
	}
	return BudgetReport{
		Status: b.accounts.Status(of, now), Overdrafts: b.accounts.Overdrafts(of.Name), Circle: b.accounts.Circular(of.Spec.Owner),
	}, true
}

// NextWindow returns when the next budget window opens or closes; false if none does.
func (b *Book) NextWindow(now time.Time) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accounts.NextWindow(now)
}

// WindowPassed wakes the gangs that wait for somebody to be able to pay, because a window has opened.
func (b *Book) WindowPassed() {
	b.mu.Lock()
	defer b.unlock()
	b.wakePayers()
}

// Usage returns the GPUs that open Leases charge, by envelope.
func (b *Book) Usage() map[budget.Key]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accounts.Usage()
}

// Spent returns the GPU time spent in each envelope's window until an instant, by envelope.
func (b *Book) Spent(now time.Time) map[budget.Key]budget.Spend {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accounts.Spent(now)
}

// SetRecord takes over the stored record of what a Budget's settled Leases have spent.
func (b *Book) SetRecord(r budget.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts.SetRecord(r)
}

// Settle folds the closed Leases of a Budget that ended by an instant into its record, and reports whether it has changed.
// Their objects may go once the record is stored; Dropped tells that one has.
func (b *Book) Settle(of string, through time.Time) ([]types.NamespacedName, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, folded, changed := b.accounts.Settle(of, through)
	names := make([]types.NamespacedName, 0, len(folded))
	for _, lease := range folded {
		namespace, name, _ := strings.Cut(lease, "/")
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names, changed
}

// Dropped tells that the object of a settled Lease is gone.
func (b *Book) Dropped(of string, lease types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts.Dropped(of, lease.String())
}

// Payers returns the Budgets that anything was ever charged to, sorted.
func (b *Book) Payers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accounts.Payers()
}

// Record returns the settled spending of a Budget.
func (b *Book) Record(of string) budget.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accounts.Record(of)
}

// NamespaceLeaves has what the closed Leases of a namespace have spent recorded, since it is being deleted, or gone, and they with
// it. It returns the Budgets that are to be settled.
func (b *Book) NamespaceLeaves(namespace string, gone bool) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := b.accounts.Leave(namespace)
	if gone {
		b.accounts.Left(namespace)
	}
	return changed
}

// chargeOf returns what a member's Lease takes from its payer from an instant on.
func (b *Book) chargeOf(m *member, now time.Time) budget.Charge {
	run := m.gang.run
	role := rank.RoleOf(&run.Spec, m.part)
	return budget.Charge{
		Payer: m.payer.key, Owner: run.Spec.Owner, Run: string(run.UID), Relation: m.payer.relation, Role: role,
		GPUs: m.gang.demand.GPUsPerPod, Rate: b.accounts.RateOf(role),
		Start: now, Until: m.gang.lastsUntil(now), Admitted: m.admittedBefore(now),
		Flavor: m.gang.demand.Flavor, Node: m.node,
	}
}

// ChargeIn returns the charge that a Lease records.
func ChargeIn(l *rqv1.Lease) budget.Charge {
	rate, err := budget.ParseRate(l.Spec.Payer.Rate)
	if err != nil {
		rate = budget.FullRate // the API admits no such rate
	}
	c := budget.Charge{
		Payer: budget.Key{Budget: l.Spec.Payer.Budget, Envelope: l.Spec.PaidByEnvelope}, Owner: l.Spec.Owner,
		Run: string(l.Spec.RunRef.UID), Relation: l.Relation(), GPUs: int(l.GPUs()), Role: l.Spec.Slice.Role, Rate: rate, Start: l.Spec.Start.Time,
	}
	if l.Spec.Until != nil {
		c.Until = l.Spec.Until.Time
	}
	if l.Spec.Admitted != nil {
		c.Admitted = l.Spec.Admitted.Time
	}
	c.Flavor, c.Node = l.Spec.Flavor, l.Node()
	return c
}

// instant returns an instant as a Lease records it; nil for none.
func instant(at time.Time) *metav1.MicroTime {
	if at.IsZero() {
		return nil
	}
	out := metav1.NewMicroTime(at)
	return &out
}
