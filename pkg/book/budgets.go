package book

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Budgets is the side of the book that the controllers of Budgets talk to: who pays, and what has been spent.
type Budgets struct {
	accounts *budget.Accounts
	fleet    *topology.Fleet
	mu       *guard
	mail     *mailbox
	waiting  *waitlist
	seats    *seating
	gone     *goneInVain
	// handbacks are closed Leases that count as open for a moment longer.
	handbacks *handbacks
}

// SetBudget adds or replaces a Budget, for the gangs that wait for somebody to be able to pay.
func (u *Budgets) SetBudget(b *rqv1.Budget) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gone.read(b)
	old := u.accounts.Budget(b.Name)
	if old != nil && old.Generation == b.Generation && old.UID == b.UID {
		return // only the status has changed
	}
	u.accounts.SetBudget(b)
	u.fleet.SetSelectorKeys(u.accounts.SelectorKeys())
	switch budget.EditOf(old, b) {
	case budget.Hours:
		u.waiting.wakeHours(b.Name)
	case budget.Amounts:
		u.waiting.wakeEdited(b.Name)
	default:
		u.waiting.wakePayers()
	}
}

// DeleteBudget forgets a Budget; what it pays for goes on.
func (u *Budgets) DeleteBudget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accounts.DeleteBudget(name)
	delete(u.gone.counts, name)
	u.fleet.SetSelectorKeys(u.accounts.SelectorKeys())
	u.waiting.wakePayers() // whose family it was in has another now
}

// RefreshBudgets assigns the overdraft as of an instant. Runs whose share of it has changed are looked at.
func (u *Budgets) RefreshBudgets(now time.Time) {
	u.mu.Lock()
	stale := u.accounts.Stale(now)
	u.mu.unlockUnchanged()
	for some := range slices.Chunk(stale, refreshedAtOnce) {
		u.refreshSome(some, now)
	}
}

// refreshedAtOnce is how many Budgets are gone through in one hold of the book: an edit of any may concern them all.
const refreshedAtOnce = 8

func (u *Budgets) refreshSome(budgets []string, now time.Time) {
	u.mu.Lock()
	defer u.mu.unlockUnchanged() // whoever is looked at brings an event if anything changes
	for _, name := range namesOf(u.accounts.RefreshOf(budgets, now)) {
		if l := u.seats.leases[name]; l != nil {
			u.mail.reconcile(l.run, lane.Date)
		}
	}
}

// BudgetReport returns the usage of a Budget, with the overdraft as of the last refresh; false for one that the book
// does not know yet, or not any more.
func (u *Budgets) BudgetReport(of *rqv1.Budget, now time.Time) (BudgetReport, bool) {
	u.mu.Lock()
	defer u.mu.unlockUnchanged()
	if u.accounts.Budget(of.Name) == nil {
		return BudgetReport{}, false
	}
	status := u.accounts.Status(of, now)
	status.HeldInVain = u.gone.of(of.Name, now)
	return BudgetReport{Status: status, Overdrafts: u.accounts.Overdrafts(of.Name),
		Circle: u.accounts.Circular(of.Spec.Owner)}, true
}

// Usage returns the GPUs that open Leases charge, by envelope.
func (u *Budgets) Usage() map[budget.Key]int {
	u.mu.Lock()
	defer u.mu.unlockUnchanged()
	return u.accounts.Usage()
}

// Spent returns the GPU time spent in each envelope's window until an instant, by envelope.
func (u *Budgets) Spent(now time.Time) map[budget.Key]budget.Spend {
	u.mu.Lock()
	defer u.mu.unlockUnchanged()
	return u.accounts.Spent(now)
}

// SetRecord takes over the stored record of what a Budget's settled Leases have spent.
func (u *Budgets) SetRecord(r budget.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accounts.SetRecord(r)
}

// Settle folds the closed Leases of a Budget that ended by an instant into its record, and reports whether it has
// changed. Their objects may go once the record is stored; Dropped tells that one has.
func (u *Budgets) Settle(of string, through time.Time) ([]types.NamespacedName, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	folded, changed := u.accounts.Settle(of, through)
	return namesOf(folded), changed
}

// SettleBeyond folds closed Leases of a Budget into its record that are more than a number and ended by an instant,
// those that ended first, and returns them. Their objects may go as those that Settle returns.
func (u *Budgets) SettleBeyond(of string, keep int, through time.Time) []types.NamespacedName {
	u.mu.Lock()
	defer u.mu.Unlock()
	return namesOf(u.accounts.SettleBeyond(of, keep, through))
}

func namesOf(leases []string) []types.NamespacedName {
	names := make([]types.NamespacedName, 0, len(leases))
	for _, lease := range leases {
		namespace, name, _ := strings.Cut(lease, "/")
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names
}

// Closed returns the number of closed Leases that are not settled, and how many of them a Budget may keep, so that all
// together keep no more than a limit.
func (u *Budgets) Closed(limit int) (closed, keep int) {
	u.mu.Lock()
	defer u.mu.unlockUnchanged()
	return u.accounts.Closed(), u.accounts.Kept(limit)
}

// Dropped tells that the object of a settled Lease is gone.
func (u *Budgets) Dropped(of string, lease types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accounts.Dropped(of, lease.String())
}

// Charged returns the Budgets that anything was ever charged to, sorted.
func (u *Budgets) Charged() []string {
	u.mu.Lock()
	defer u.mu.unlockUnchanged()
	return u.accounts.Payers()
}

// Record returns the settled spending of a Budget.
func (u *Budgets) Record(of string) budget.Record {
	u.mu.Lock()
	defer u.mu.unlockUnchanged()
	return u.accounts.Record(of)
}

// NamespaceLeaves has what the closed Leases of a namespace have spent recorded, since it is being deleted, or gone,
// and they with it. It returns the Budgets that are to be settled.
func (u *Budgets) NamespaceLeaves(namespace string, gone bool) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.handbacks.takeFrom(namespace)
	changed := u.accounts.Leave(namespace)
	if gone {
		u.accounts.Left(namespace)
	}
	return changed
}

// BudgetReport is what a Budget's status is made from.
type BudgetReport struct {
	Status     rqv1.BudgetStatus
	Overdrafts []budget.Overdraft
	// Circle is the circle of parents that the Budget's owner is in; nil when it is in none.
	Circle []rqv1.Owner
}
