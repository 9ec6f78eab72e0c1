package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// TestStormsOfExchanges lets elastic Runs that borrow become wider and narrower while their owners' Budgets change, so
// that pods exchange payers, lose pods and nodes, and die at any write. No pod has two Leases at once, nobody pays for
// more than a Budget allows (I3), and what is counted is what the Leases say (I8).
func TestStormsOfExchanges(t *testing.T) {
	total := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		s := newStorm(w)
		s.fleet("d0", rapid.IntRange(8, 10).Draw(t, "nodes"))
		for _, owner := range []rqv1.Owner{"org:a", "org:b"} {
			s.setBudget(string(owner[len("org:"):]), owner, rapid.IntRange(1, 3).Draw(t, "budget of "+string(owner))*4)
		}
		s.lends(t)
		s.submitElasticBorrower(t)
		s.work()
		actions := s.quietActions()
		maps.DeleteFunc(actions, func(name string, _ func(*rapid.T)) bool {
			return slices.Contains([]string{"another turn", "add node", "bind"}, name)
		})
		maps.Copy(actions, s.exchangeActions())
		s.few(t, actions)
		t.Repeat(actions)
		s.Faults.Drop(sim.Crash)
		s.calm()
		w.check()
		w.checkSettled()
		w.checkApart()
		for _, l := range w.Leases {
			if l.Spec.Repaid != nil {
				s.tally["repaid"]++
			}
		}
		s.addTo(total)
	})
	t.Log(total)
}

// submitElasticBorrower submits a Run, the only one of its owner, that a sponsor may pay for as well.
func (s *storm) submitElasticBorrower(t *rapid.T) {
	owner := rapid.SampledFrom([]rqv1.Owner{"org:a", "org:b"}).Draw(t, "owner")
	name := fmt.Sprintf("run-%s", owner[len("org:"):])
	if s.Runs[name] != nil || slices.Contains(s.Names(), name) {
		return
	}
	changes := []func(*rqv1.RunSpec){checkpointed, borrows("lender")}
	groups, pods := rapid.IntRange(1, 3).Draw(t, "groups"), rapid.IntRange(1, 2).Draw(t, "pods per group")
	part := pods // what widths are made of
	if rapid.Bool().Draw(t, "without groups") {
		part = 1
		changes = append(changes, ungrouped)
	}
	changes = append(changes, elasticAny(t, groups*pods/part, part)...)
	s.submitWithSpares(name, owner, groups, pods, rapid.SampledFrom([]int{2, 4}).Draw(t, "GPUs per pod"),
		rapid.IntRange(0, 1).Draw(t, "spares per group"), changes...)
}

// exchangeActions are what happens to them, above all what has them grow on other money than they began with.
func (s *storm) exchangeActions() map[string]func(*rapid.T) {
	actions := s.lossActions()
	maps.Copy(actions, map[string]func(*rapid.T){
		"submit": s.submitElasticBorrower,
		"desire": s.disturbing(s.desireAny),
		"budget": s.disturbing(func(t *rapid.T) {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			s.setBudget(name, rqv1.Owner("org:"+name), rapid.IntRange(1, 5).Draw(t, "nodes paid for")*8)
		}),
		"more money": s.disturbing(func(t *rapid.T) {
			for _, name := range []string{"a", "b"} {
				s.setBudget(name, rqv1.Owner("org:"+name), 40)
			}
			s.someSteps(t)
		}),
		"a write fails": s.disturbing(func(t *rapid.T) {
			s.Faults.Add(sim.Fault{Of: sim.Openings | sim.Closings, After: rapid.IntRange(0, 3).Draw(t, "writes"),
				Do: rapid.SampledFrom([]sim.Effect{sim.Written, sim.Late, sim.Away, sim.Refused}).Draw(t, "outcome")})
		}),
	})
	return actions
}
