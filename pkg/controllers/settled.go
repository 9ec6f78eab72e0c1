package controllers

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// settled is what is still to be written of the settlement of closed Leases. Records come first: a Lease goes only once
// what it spent is stored, and a Lease that is in a record counts no more, so that a crash in between changes nothing.
type settled struct {
	mu      sync.Mutex
	budgets map[string]bool // whose records have changed
	leases  []settledLease
	hurry   chan struct{} // holds one when something is to be written at once
}

func newSettled() *settled {
	return &settled{budgets: map[string]bool{}, hurry: make(chan struct{}, 1)}
}

// settledLease is a Lease that is in the record of a Budget.
type settledLease struct {
	types.NamespacedName
	budget string
}

func (s *settled) changed(budgets []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range budgets {
		s.budgets[b] = true
	}
}

// fold notes that a Budget's record has changed, and has Leases in it.
func (s *settled) fold(budget string, leases []types.NamespacedName) {
	s.changed([]string{budget})
	for _, name := range leases {
		s.add(settledLease{name, budget})
	}
}

// storeSoon notes records that have changed because Lease objects are gone already, or about to go: until they are
// written, they are nowhere else.
func (s *settled) storeSoon(budgets []string) {
	if len(budgets) == 0 {
		return
	}
	s.changed(budgets)
	select {
	case s.hurry <- struct{}{}:
	default: // it is on its way
	}
}

func (s *settled) add(leases ...settledLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = append(s.leases, leases...)
}

// take returns everything that is to be written, which is the caller's from then on.
func (s *settled) take() (budgets []string, leases []settledLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	budgets, leases = slices.Sorted(maps.Keys(s.budgets)), s.leases
	s.budgets, s.leases = map[string]bool{}, nil
	return budgets, leases
}

// undeleted returns the number of Leases that are settled and have still to be deleted.
func (s *settled) undeleted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases)
}
