package book_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// The scheduler dies when the first of a narrow gang's Leases are written; there is more or less room when it is back.
func TestANarrowStartGoesOnAfterARestart(t *testing.T) {
	for name, test := range map[string]struct {
		bound, more int
		spares      int
		want        int32
	}{
		"nothing is written":          {0, 0, 0, 16},
		"one Lease is":                {1, 0, 0, 16},
		"all are":                     {2, 0, 0, 16},
		"and there is more room":      {1, 1, 0, 24},
		"all are, and there is more":  {2, 1, 0, 24},
		"one of a gang with spares":   {1, 2, 1, 16},
		"three of a gang with spares": {3, 2, 1, 16},
		"all of a gang with spares":   {4, 2, 1, 16},
	} {
		for _, least := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, at least %d pods", name, least), func(t *testing.T) {
				tell(t, func(w *world) {
					nodes := 2 + 2*test.spares
					for i := range nodes {
						w.addNode(fmt.Sprintf("n%d", i), "d0")
					}
					w.setBudget("a", "org:a", 64)
					w.submitWithSpares("run0", "org:a", 3, 1, 8, test.spares, elastic(least, 1))
					for range 3 {
						w.reconcile("run0")
						for _, uid := range w.SortedPods() {
							w.cycle(uid)
						}
					}
					binding := w.Bindings()
					if len(binding) != nodes {
						w.t.Fatalf("%d pods are being bound, want %d", len(binding), nodes)
					}
					for _, uid := range binding[:test.bound] {
						w.Bind(uid, sim.Written)
					}
					for i := range test.more * (1 - test.spares) {
						w.addNode(fmt.Sprintf("m%d", i), "d0")
					}
					w.crash()
					w.settle()
					w.granted("run0", test.want)
					for _, lease := range w.Leases {
						if lease.Status.Closed {
							w.t.Fatalf("Lease %s was given up", lease.Name)
						}
					}
				})
			})
		}
	}
}

// A process that comes up amid a start hears of pods before it hears of nodes, and decides when it has heard of all: no
// width that it thought of meanwhile was planned, also if the Run has been edited since.
func TestAStartThatIsUnderWayHasNoWidthBeforeAllIsKnown(t *testing.T) {
	for name, edits := range map[string]bool{"as it was": false, "edited": true} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 3)
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, elastic(1, 1))
				for range 3 {
					w.reconcile("run0")
					for _, uid := range w.SortedPods() {
						w.cycle(uid)
					}
				}
				for _, uid := range w.Bindings() {
					w.Bind(uid, sim.Written)
				}
				run := w.Runs["run0"]
				b := book.New(w.Args)
				b.Budgets.SetBudget(w.Budgets["a"])
				b.SetRun(run)
				for _, uid := range w.SortedPods() {
					b.SetPod(w.Pods[uid])
					b.SetMember(w.Pods[uid])
				}
				for _, l := range w.OpenLeases() {
					b.SetLease(l)
				}
				for _, n := range w.Nodes {
					b.SetNode(n)
				}
				if edits {
					run = run.DeepCopy()
					run.Generation++
					run.Spec.Malleable.DesiredTotalGPUs = &run.Spec.Resources.TotalGPUs
					b.SetRun(run)
				}
				b.Begin(w.Now)
				b.Assess(run.UID, w.Now)
				look, _ := b.Look(book.Objects{Name: types.NamespacedName{Namespace: run.Namespace, Name: run.Name},
					Run: run, Leases: w.OpenLeases()})
				if width := look.Demand.Pods(); width != 3 {
					w.t.Fatalf("it is %d pods wide and has 3 Leases", width)
				}
			})
		})
	}
}
