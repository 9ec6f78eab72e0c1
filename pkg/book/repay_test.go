package book_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// OpenLeases returns the Leases that are open, one for each pod.
func (w *world) OpenLeases() []*rqv1.Lease {
	return slices.DeleteFunc(slices.Clone(rank.AsPaid(w.Cluster.OpenLeases())), func(l *rqv1.Lease) bool {
		return l.Status.Closed
	})
}

// lends has the envelope of a Budget lend to everybody.
func (w *world) lends(budget string) {
	w.edit(budget, func(e *rqv1.Envelope) { e.Lending = &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"*"}} })
}

// borrows lets a Run borrow from an owner.
func borrows(from rqv1.Owner) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) { s.Funding = &rqv1.RunFunding{AllowBorrow: true, Sponsors: []rqv1.Owner{from}} }
}

// payersOf returns the Budgets that pay for the ranks of a Run, in order, as the ledger says.
func (w *world) payersOf(run string) []string {
	by := map[int]string{}
	for _, l := range w.OpenLeases() {
		if l.Spec.RunRef.Name == run {
			by[l.Index()] += l.Spec.Payer.Budget
		}
	}
	var out []string
	for i := range len(by) {
		out = append(out, by[i])
	}
	return out
}

// grownAbove has a Run be paid by its owner and by a sponsor, and then by its owner for two more ranks.
func (w *world) grownAbove(changes ...func(*rqv1.RunSpec)) {
	w.fleet("d0", 5)
	w.setBudget("own", "org:own", 16)
	w.setBudget("lender", "org:lender", 8)
	w.lends("lender")
	w.submitWithSpares("run0", "org:own", 1, 5, 8, 0, append(changes, elastic(1, 1), ungrouped, borrows("org:lender"))...)
	w.settle()
	if got, want := w.payersOf("run0"), []string{"own", "own", "lender"}; !slices.Equal(got, want) {
		w.t.Fatalf("%v pay, want %v", got, want)
	}
	w.edit("own", func(e *rqv1.Envelope) { e.Concurrency = 32 })
}

// A Run grows on its owner's money above what a sponsor pays for, and the two exchange payers, whatever becomes of any
// write of that, and whoever ends at it: no payer ever pays more than before, and what is given back is the sponsor's.
func TestBorrowedGoesFirstWhateverFails(t *testing.T) {
	kinds := sim.Openings | sim.Closings
	for _, do := range []sim.Effect{sim.Written, sim.Crash, sim.Late, sim.Away, sim.Refused} {
		for write := range 4 {
			t.Run(fmt.Sprintf("%d at %d", do, write), func(t *testing.T) {
				plays(t, 3, func(t *rapid.T) {
					w := newWorld(t)
					w.grownAbove()
					w.Faults.Add(sim.Fault{Of: kinds, After: write, Do: do})
					w.settle()
					w.afterRest()
					w.check()
					if got, want := w.payersOf("run0"), []string{"own", "own", "own", "own", "lender"}; !slices.Equal(got, want) {
						t.Fatalf("%v pay, want %v\n%s", got, want, w.leasesTold())
					}
					w.paidOnce(5, 2)
					w.pay(32, 8)
					w.crash()
					w.paidOnce(5, 2)
					w.pay(32, 8)
					w.desire("run0", 32)
					w.settle()
					w.check()
					w.paidOnce(4, 3)
					w.pay(32, 0)
				})
			})
		}
	}
}

// A rank is lost while it is not known whether its payer has been exchanged, as long as the API server does not answer:
// its pod goes meanwhile, and once there are answers again nobody has paid for more than before, nor anybody twice.
func TestARankIsLostWhileItsPayerIsUnknown(t *testing.T) {
	for _, do := range []sim.Effect{sim.Away, sim.Late, sim.Refused} {
		for _, lost := range []string{"run0-2", "run0-4"} {
			for write := range 4 {
				t.Run(fmt.Sprintf("%s, %d from %d on", lost, do, write), func(t *testing.T) {
					plays(t, 2, func(t *rapid.T) { lostWhileUnknown(newWorld(t), do, write, lost) })
				})
			}
		}
	}
}

func lostWhileUnknown(w *world, do sim.Effect, write int, lost string) {
	w.grownAbove()
	w.Faults.Add(sim.Fault{Of: sim.Openings | sim.Closings, After: write, Do: do, Lasts: true})
	w.settle()
	w.fleet("d1", 1)
	pod := w.pod(lost)
	w.Lose(w.Pods[pod].Spec.NodeName)
	for range 5 {
		w.round()
		w.Pass(time.Second)
		w.payAtMost(32, 8)
	}
	if is := w.Pods[pod]; is != nil && is.DeletionTimestamp == nil {
		w.t.Fatalf("pod %s of a lost node stays\n%s", lost, w.leasesTold())
	}
	w.Faults.Drop(do)
	w.settle()
	w.afterRest()
	w.check()
	w.payAtMost(32, 8)
	want := []string{"own", "own", "own", "own", "lender"}
	if got := w.payersOf("run0"); !slices.Equal(got, want) {
		w.t.Fatalf("%v pay, want %v\n%s", got, want, w.leasesTold())
	}
	w.pay(32, 8)
	w.checkApart()
}

// An API server that refuses Leases that continue others, as one of which the kinds are older, keeps nothing else of a
// Run from being done, and is asked now and then.
func TestARefusedExchangeKeepsNothingBack(t *testing.T) {
	plays(t, 3, func(t *rapid.T) {
		w := newWorld(t)
		w.grownAbove()
		w.Faults.Add(sim.Fault{Of: sim.Openings, Do: sim.Refused, Lasts: true})
		w.settle()
		w.check()
		if got, want := w.payersOf("run0"), []string{"own", "own", "lender", "own", "own"}; !slices.Equal(got, want) {
			t.Fatalf("%v pay, want %v\n%s", got, want, w.leasesTold())
		}
		w.desire("run0", 32)
		w.settle()
		w.check()
		if got, want := w.payersOf("run0"), []string{"own", "own", "lender", "own"}; !slices.Equal(got, want) {
			t.Fatalf("%v pay, want %v\n%s", got, want, w.leasesTold())
		}
		w.Faults.Drop(sim.Refused)
		w.afterRest()
		w.check()
		w.paidOnce(4, 3)
		if got, want := w.payersOf("run0"), []string{"own", "own", "own", "lender"}; !slices.Equal(got, want) {
			t.Fatalf("%v pay, want %v\n%s", got, want, w.leasesTold())
		}
	})
}

// afterRest lets the time pass for which a refused exchange rests.
func (w *world) afterRest() {
	w.Pass(5*time.Minute + time.Second)
	w.settle()
}

// paying returns what the Run's owner and the sponsor pay for, as the book counts.
func (w *world) paying() (own, lender int) {
	usage := w.Book.Budgets.Usage()
	return usage[budget.Key{Budget: "own", Envelope: "e"}], usage[budget.Key{Budget: "lender", Envelope: "e"}]
}

// pay asserts what the two pay for, and payAtMost that it is no more.
func (w *world) pay(own, lender int) {
	w.t.Helper()
	if o, l := w.paying(); o != own || l != lender {
		w.t.Fatalf("the owner pays for %d and the sponsor for %d GPUs, want %d and %d\n%s", o, l, own, lender, w.leasesTold())
	}
}

func (w *world) payAtMost(own, lender int) {
	w.t.Helper()
	if o, l := w.paying(); o > own || l > lender {
		w.t.Fatalf("the owner pays for %d and the sponsor for %d GPUs, at most %d and %d\n%s", o, l, own, lender,
			w.leasesTold())
	}
}

// checkApart asserts that no pod had two Leases at once.
func (w *world) checkApart() {
	w.t.Helper()
	last := map[types.UID]*rqv1.Lease{}
	byStart := slices.SortedFunc(maps.Values(w.Leases), func(x, y *rqv1.Lease) int {
		return cmp.Or(x.Spec.Start.Compare(y.Spec.Start.Time), strings.Compare(x.Name, y.Name))
	})
	for _, l := range byStart {
		before := last[l.PodUID()]
		if before != nil && (!before.Status.Closed || before.Status.Ended.After(l.Spec.Start.Time)) {
			w.t.Fatalf("Leases %s and %s are of one pod, and overlap\n%s", before.Name, l.Name, w.leasesTold())
		}
		last[l.PodUID()] = l
	}
}

// paidOnce asserts that so many Leases are open and closed, and that the book knows the open ones as they are stored.
func (w *world) paidOnce(open, closed int) {
	w.t.Helper()
	known, is := w.Book.OpenLeases(), 0
	for _, l := range w.Cluster.OpenLeases() {
		if c, has := known[named(l)]; !has || c.Payer.Budget != l.Spec.Payer.Budget || !c.Start.Equal(l.Spec.Start.Time) {
			w.t.Fatalf("Lease %s is open, and the book has %+v", l.Name, c)
		}
		is++
	}
	if is != open || len(known) != open || len(w.Leases)-is != closed {
		w.t.Fatalf("%d are open, the book has %d, %d are closed; want %d and %d\n%s", is, len(known), len(w.Leases)-is, open,
			closed, w.leasesTold())
	}
}

// leasesTold tells all Leases, for failures.
func (w *world) leasesTold() (out string) {
	for _, name := range slices.Sorted(maps.Keys(w.Leases)) {
		l := w.Leases[name]
		out += fmt.Sprintf("%s rank %d from %s paid by %s, for %s, %+v\n", name, l.Index(), l.Spec.Start, l.Spec.Payer.Budget,
			l.Spec.Reason, l.Status)
	}
	return out
}

// What an exchange of payers does not change is who is in overdraft later: a payer's oldest stay its oldest, whichever
// pods it pays for, and nobody else's become the youngest.
func TestAnExchangeMovesNoOverdraft(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 6)
		w.setBudget("own", "org:own", 16)
		w.setBudget("lender", "org:lender", 8)
		w.lends("lender")
		w.submitWithSpares("run0", "org:own", 1, 4, 8, 0, elastic(1, 1), ungrouped, borrows("org:lender"))
		w.desire("run0", 24)
		w.settle()
		w.edit("own", func(e *rqv1.Envelope) { e.Concurrency = 24 })
		w.Pass(time.Hour)
		w.submit("run1", "org:own", 1, 1, 8)
		w.settle()
		w.Pass(time.Hour)
		w.edit("own", func(e *rqv1.Envelope) { e.Concurrency = 32 })
		w.desire("run0", 32)
		w.settle()
		if got, want := w.payersOf("run0"), []string{"own", "own", "own", "lender"}; !slices.Equal(got, want) {
			w.t.Fatalf("%v pay, want %v\n%s", got, want, w.leasesTold())
		}
		w.edit("own", func(e *rqv1.Envelope) { e.Concurrency = 24 })
		for _, told := range []string{"as it is", "after a restart"} {
			w.Book.Budgets.RefreshBudgets(w.Now)
			over := map[string]int{}
			for _, l := range w.OpenLeases() {
				over[l.Spec.RunRef.Name] += w.Book.Overdraft(l.Key())
			}
			if want := map[string]int{"run0": 8, "run1": 0}; !maps.Equal(want, over) {
				w.t.Errorf("%s: overdraft is %v, want %v\n%s", told, over, want, w.leasesTold())
			}
			w.crash()
		}
	})
}

// The Leases of a Run that ends by a date exchange payers too, although those of its start tell an end that is earlier
// by the seconds that the start took: each payer goes on with his own.
func TestARunWithAnEndExchangesPayers(t *testing.T) {
	tell(t, func(w *world) {
		w.grownAbove(func(s *rqv1.RunSpec) {
			s.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 10 * time.Hour}}
		})
		ends := map[time.Time]bool{}
		w.settle()
		w.check()
		for _, l := range w.OpenLeases() {
			ends[l.Spec.Until.Time] = true
		}
		want := []string{"own", "own", "own", "own", "lender"}
		if got := w.payersOf("run0"); !slices.Equal(got, want) || len(ends) < 2 {
			w.t.Fatalf("%v pay, want %v; ends %v\n%s", got, want, ends, w.leasesTold())
		}
	})
}
