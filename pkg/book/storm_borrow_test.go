package book_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// TestStormsOfBorrowers lets Runs and groups of others pay from few, tight Budgets of a family and of a sponsor, lose
// pods, some of which come too late, and die at any write. Nobody pays for more than a Budget allows (I3), and what is
// counted is what the Leases say (I8).
func TestStormsOfBorrowers(t *testing.T) {
	total := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		s := newStorm(w)
		s.fleet("d0", rapid.IntRange(4, 7).Draw(t, "nodes"))
		for _, owner := range []rqv1.Owner{"org:a", "org:b", "org"} {
			s.setBudget(string(owner[len(owner)-1:]), owner, rapid.IntRange(1, 6).Draw(t, "budget of "+string(owner))*4)
		}
		s.lends(t)
		for range 3 {
			s.submitBorrower(t)
			s.work()
		}
		actions := s.quietActions()
		maps.DeleteFunc(actions, func(name string, _ func(*rapid.T)) bool {
			return slices.Contains([]string{"submit", "another turn", "add node", "bind"}, name)
		})
		maps.Copy(actions, s.borrowActions())
		s.few(t, actions)
		t.Repeat(actions)
		s.Faults.Drop(sim.Crash)
		s.calm()
		w.check()
		w.checkSettled()
		s.addTo(total)
	})
	t.Log(total)
}

// lends gives a sponsor money that it lends to everybody.
func (s *storm) lends(t *rapid.T) {
	s.setBudget("lender", "lender", rapid.IntRange(1, 4).Draw(t, "budget of the sponsor")*8)
	b := s.Budgets["lender"].DeepCopy()
	b.Generation++
	most := rapid.Int32Range(1, 4).Draw(t, "lent at most") * 4
	b.Spec.Envelopes[0].Lending = &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"*"}, MaxConcurrency: &most}
	s.SetBudget(b)
}

// submitBorrower submits a Run, or a group of others, that a sponsor may pay for.
func (s *storm) submitBorrower(t *rapid.T) {
	name := fmt.Sprintf("run%d%s", rapid.IntRange(0, 3).Draw(t, "name"),
		rapid.SampledFrom([]string{"", "0"}).Draw(t, "any"))
	if s.Runs[name] != nil || slices.Contains(s.Names(), name) {
		return
	}
	changes := []func(*rqv1.RunSpec){checkpointed}
	if rapid.Bool().Draw(t, "borrows") {
		changes = append(changes, func(r *rqv1.RunSpec) {
			r.Funding = &rqv1.RunFunding{AllowBorrow: true, Sponsors: []rqv1.Owner{"lender"}}
		})
	}
	groups, pods := rapid.IntRange(1, 2).Draw(t, "groups"), rapid.IntRange(1, 3).Draw(t, "pods per group")
	if rapid.IntRange(0, 2).Draw(t, "others make its pods") > 0 {
		changes = append(changes, lateAny(t, groups*pods))
	}
	if rapid.Bool().Draw(t, "without groups") {
		changes = append(changes, ungrouped)
	}
	s.submitWithSpares(name, rapid.SampledFrom([]rqv1.Owner{"org:a", "org:b"}).Draw(t, "owner"), groups, pods,
		rapid.SampledFrom([]int{2, 4}).Draw(t, "GPUs per pod"), rapid.IntRange(0, 1).Draw(t, "spares per group"), changes...)
}

// borrowActions are what happens to them: above all pods are lost, for a while or for good.
func (s *storm) borrowActions() map[string]func(*rapid.T) {
	actions := s.lossActions()
	maps.Copy(actions, map[string]func(*rapid.T){
		"submit": s.submitBorrower,
		"submit two": func(t *rapid.T) {
			s.submitBorrower(t)
			s.submitBorrower(t)
			s.step(s.work)
		},
		"controller":    s.controlAny,
		"group smaller": s.disturbing(s.smallerAny),
		"group smaller for long": s.disturbing(func(t *rapid.T) {
			s.smallerAny(t)
			s.step(s.work)
			s.during(gangDeadline + 2*time.Second)
			s.step(s.work)
		}),
		"late pods": s.disturbing(s.lateAnew),
	})
	return actions
}

// disturbing is an action after which nobody is held to what was promised before.
func (s *storm) disturbing(act func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		act(t)
		s.disturb()
	}
}

// lossActions are how Runs lose pods, nodes, or all that they have.
func (s *storm) lossActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"one ends": s.disturbing(func(t *rapid.T) {
			if uid, ok := pick(t, "pod", s.beganPods()); ok {
				s.EndPod(uid, corev1.PodFailed)
			}
		}),
		"one is evicted": s.disturbing(func(t *rapid.T) {
			if uid, ok := pick(t, "pod", s.beganPods()); ok {
				s.Evict(uid, "NodeShutdown")
			}
		}),
		"lose nodes": s.disturbing(s.loseAny),
		"forgive":    s.disturbing(s.forgiveAny),
		"end": func(t *rapid.T) {
			if name, ok := pick(t, "run", slices.Sorted(maps.Keys(s.Runs))); ok {
				s.DeleteRun(name)
				s.disturb()
			}
		},
	}
}

// lateAnew has a pod be made at last that had gone for good.
func (s *storm) lateAnew(t *rapid.T) {
	gone := slices.SortedFunc(maps.Keys(s.controllers.less), func(x, y slot) int {
		return cmp.Or(cmp.Compare(x.run, y.run), cmp.Compare(x.n, y.n))
	})
	if len(gone) == 0 {
		return
	}
	delete(s.controllers.less, rapid.SampledFrom(gone).Draw(t, "slot"))
	s.step(s.work)
}
