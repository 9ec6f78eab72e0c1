package budget

import (
	"cmp"
	"maps"
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

// goingNamespace is a namespace that is being deleted, and who pays for closed Leases in it.
type goingNamespace struct {
	namespace string
	payer     Key
}

// Leave has the closed Leases of a namespace settled early, since the namespace is being deleted and takes their
// objects with it: a process that comes after would find them nowhere. Those that are closed later follow. It returns
// the Budgets that have any to be settled, also when it is told again. A record tells their names and speaks of no
// later end for their sake, so that others do not count as settled.
func (a *Accounts) Leave(namespace string) []string {
	if !a.leaving[namespace] {
		a.leaving[namespace] = true
		a.leave(namespace)
	}
	var out []string
	for budget, s := range a.settlings {
		if len(s.going) > 0 || len(s.leaving) > 0 || len(s.late) > 0 {
			out = append(out, budget)
		}
	}
	slices.Sort(out)
	return out
}

// leave notes which envelopes pay for closed Leases that go with a namespace.
func (a *Accounts) leave(namespace string) {
	changed := map[*settling]bool{}
	for payer, at := range a.accounts {
		if len(at.closed[namespace]) > 0 {
			s := a.settlingOf(payer.Budget)
			s.leaving = append(s.leaving, goingNamespace{namespace, payer})
			changed[s] = true
		}
	}
	for s := range changed {
		slices.SortFunc(s.leaving, func(x, y goingNamespace) int {
			return cmp.Or(strings.Compare(x.namespace, y.namespace), compareKeys(x.payer, y.payer))
		})
	}
}

// list has the closed Leases of the next envelope be settled that go with a namespace; false when there is none left.
func (a *Accounts) list(s *settling) bool {
	if len(s.leaving) == 0 {
		return false
	}
	a.listNext(s, s.leaving[0])
	s.leaving = s.leaving[1:]
	return true
}

func (a *Accounts) listNext(s *settling, next goingNamespace) {
	for _, lease := range slices.Sorted(maps.Keys(a.account(next.payer).closed[next.namespace])) {
		s.going = append(s.going, goingLease{lease, next.payer})
	}
}

// Left tells that a namespace is gone. One of the same name is another: what is closed in that one does not go.
func (a *Accounts) Left(namespace string) {
	delete(a.leaving, namespace)
	for _, s := range a.settlings {
		s.leaving = slices.DeleteFunc(s.leaving, func(next goingNamespace) bool {
			if next.namespace != namespace {
				return false
			}
			a.listNext(s, next)
			return true
		})
	}
}

// Leaves reports whether the namespace of a Lease is being deleted.
func (a *Accounts) Leaves(lease string) bool {
	return a.leaving[namespaceOf(lease)]
}

// settleEarly folds the next portion of a Budget's Leases that go with their namespaces, and returns them.
func (a *Accounts) settleEarly(s *settling) []string {
	var folded []string
	for len(s.early) < portion && (len(s.going) > 0 || a.list(s)) {
		if len(s.going) == 0 {
			continue // they have been settled meanwhile
		}
		next := s.going[0]
		s.going = s.going[1:]
		if p, closed := a.account(next.payer).closed.of(next.lease); closed {
			a.account(next.payer).fold(next.lease, p)
			s.early[next.lease] = true
			folded = append(folded, next.lease)
		}
	}
	return folded
}
