package plan

import (
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Fork changes a fleet and its Budgets for a look at what would be, and takes the changes back, the last first. It is
// the fleet and the Budgets themselves that change: whoever forks them reverts before anybody else looks.
type Fork struct {
	fleet    *topology.Fleet
	accounts *budget.Accounts
	changes  []change
}

// change is one step of a Fork, as what reverts it: what a node gets back, negative GPUs when it loses it, or a Lease
// that has the charge that it had before, if it had one.
type change struct {
	node   string
	gpus   int
	beside *topology.Amounts
	lease  string
	charge budget.Charge
	open   bool
}

// NewFork returns a Fork without changes.
func NewFork(fleet *topology.Fleet, accounts *budget.Accounts) *Fork {
	return &Fork{fleet: fleet, accounts: accounts}
}

// Take has GPUs of a node be held, with what is held beside them.
func (f *Fork) Take(node string, gpus int, beside *topology.Amounts) {
	if gpus != 0 {
		f.fleet.Hold(node, gpus, beside)
		f.changes = append(f.changes, change{node: node, gpus: gpus, beside: beside})
	}
}

// Give has GPUs of a node be free, with what is held beside them.
func (f *Fork) Give(node string, gpus int, beside *topology.Amounts) { f.Take(node, -gpus, beside) }

// Open charges a Lease that has not been closed.
func (f *Fork) Open(lease string, c budget.Charge) {
	f.note(lease)
	f.accounts.Open(lease, c)
}

// Void takes a charge back as if it had never been, and returns it, if there is one.
func (f *Fork) Void(lease string) (budget.Charge, bool) {
	f.note(lease)
	return f.accounts.Void(lease)
}

// Close ends a charge: what it spent until then stays spent.
func (f *Fork) Close(lease string, ended time.Time) {
	f.note(lease)
	f.accounts.Close(lease, ended)
}

func (f *Fork) note(lease string) {
	before, open := f.accounts.Charge(lease)
	f.changes = append(f.changes, change{lease: lease, charge: before, open: open})
}

// Mark returns how many changes there have been, to revert to.
func (f *Fork) Mark() int { return len(f.changes) }

// Revert takes all changes back.
func (f *Fork) Revert() { f.RevertTo(0) }

// RevertTo takes the changes back that came after a mark.
func (f *Fork) RevertTo(mark int) {
	for i := len(f.changes) - 1; i >= mark; i-- {
		switch c := &f.changes[i]; {
		case c.lease == "":
			f.fleet.Hold(c.node, -c.gpus, c.beside)
		case c.open:
			f.accounts.Open(c.lease, c.charge)
		default:
			f.accounts.Void(c.lease)
		}
	}
	f.changes = f.changes[:mark]
}
