package book

import (
	"maps"
	"slices"
)

// endWithRun has all that is charged to a running gang end with its Run, which may be sooner than was known before, and
// those looked at again who may be paid for by that.
func (s *seating) endWithRun(g *gang) {
	var names []string
	for name, l := range s.ofRun[g.run.UID] {
		l.charge = g.endingWithRun(l.charge)
		names = append(names, name.String())
	}
	for m := range g.all() {
		names = append(names, s.leaseOf(m.pod).String())
	}
	for i := range g.vacant {
		names = append(names, charged(g.vacant[i].pod))
	}
	for index := range g.aside {
		names = append(names, charged(moneyOf(g, index)))
	}
	eased := map[string]bool{}
	for _, name := range names {
		charge, open := s.accounts.Charge(name)
		if sooner := g.endingWithRun(charge); open && sooner != charge {
			s.accounts.Open(name, sooner)
			eased[charge.Payer.Budget] = true
		}
	}
	for _, budget := range slices.Sorted(maps.Keys(eased)) {
		s.waiting.wakeBudget(budget)
	}
}
