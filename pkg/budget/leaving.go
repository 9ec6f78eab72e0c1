package budget

import (
	"cmp"
	"slices"
	"strings"
)

// portion is how many Leases of one Budget are settled at a time. Of those that are settled early a record holds the
// names, and there is an end to what a ConfigMap holds.
const portion = 1000

// goingLease is a closed Lease whose namespace is being deleted, and its payer.
type goingLease struct {
	lease string
	payer Key
}

// Leave has the closed Leases of a namespace settled early, since the namespace is being deleted and takes their
// objects with it: a process that comes after would find them nowhere. Those that are closed later follow. It returns
// the Budgets that have any to be settled, also when it is told again. A record tells their names and speaks of no
// later end for their sake, so that others do not count as settled.
func (a *Accounts) Leave(namespace string) []string {
	if !a.leaving[namespace] {
		a.leaving[namespace] = true
		a.leave()
	}
	var out []string
	for budget, s := range a.settlings {
		if len(s.going) > 0 || len(s.late) > 0 {
			out = append(out, budget)
		}
	}
	slices.Sort(out)
	return out
}

// leave notes the closed Leases that go with their namespaces.
func (a *Accounts) leave() {
	changed := map[*settling]bool{}
	for payer, at := range a.accounts {
		for lease := range at.closed {
			if a.Leaves(lease) {
				s := a.settlingOf(payer.Budget)
				s.going = append(s.going, goingLease{lease, payer})
				changed[s] = true
			}
		}
	}
	for s := range changed {
		slices.SortFunc(s.going, func(x, y goingLease) int {
			return cmp.Or(strings.Compare(x.lease, y.lease), compareKeys(x.payer, y.payer))
		})
	}
}

// Left tells that a namespace is gone. One of the same name is another.
func (a *Accounts) Left(namespace string) { delete(a.leaving, namespace) }

// Leaves reports whether the namespace of a Lease is being deleted.
func (a *Accounts) Leaves(lease string) bool {
	namespace, _, _ := strings.Cut(lease, "/")
	return a.leaving[namespace]
}

// settleEarly folds the next portion of a Budget's Leases that go with their namespaces, and returns them.
func (a *Accounts) settleEarly(s *settling) []string {
	var folded []string
	for len(s.going) > 0 && len(s.early) < portion {
		next := s.going[0]
		s.going = s.going[1:]
		if p, closed := a.account(next.payer).closed[next.lease]; closed {
			a.account(next.payer).fold(next.lease, p)
			s.early[next.lease] = true
			folded = append(folded, next.lease)
		}
	}
	return folded
}
