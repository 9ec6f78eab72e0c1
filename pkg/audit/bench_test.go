package audit_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// large is a world of 5,000 nodes and 20,000 pods of Runs, each with its open Lease, paid by 200 Budgets.
func large() *audit.World {
	w := &audit.World{At: noon}
	for i := range 5000 {
		w.Nodes = append(w.Nodes, node(fmt.Sprintf("n%d", i), fmt.Sprintf("d%d", i/128), 8))
	}
	group := int32(32)
	for i := range 1250 {
		r := run(fmt.Sprintf("run-%d", i), 32, rqv1.RunRunning)
		r.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &group}
		w.Runs = append(w.Runs, r)
		for index := range 16 {
			p := pod(r, rank.Part{Index: index}, fmt.Sprintf("n%d", (i*16+index)/4), 2)
			l := lease(r, p, 2, time.Hour)
			l.Spec.Payer.Budget = fmt.Sprintf("team-%d", i%200)
			w.Pods, w.Leases = append(w.Pods, p), append(w.Leases, l)
		}
	}
	for i := range 200 {
		held := int32(0)
		for j := i; j < 1250; j += 200 {
			held += 32
		}
		w.Budgets = append(w.Budgets,
			&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i), Generation: 1},
				Spec: rqv1.BudgetSpec{Owner: "org:team",
					Envelopes: []rqv1.Envelope{{Name: "all", Flavor: "H100", Concurrency: 1000}}},
				Status: rqv1.BudgetStatus{ObservedGeneration: 1, UsedGPUs: held,
					Envelopes: []rqv1.EnvelopeStatus{{Name: "all", OwnedGPUs: held}}}})
	}
	return w
}

// BenchmarkLook measures one look of the scheduler's, and one at a whole ledger with as many closed Leases again.
func BenchmarkLook(b *testing.B) {
	open, whole := large(), large()
	whole.Whole = true
	for i := range whole.Leases {
		l := whole.Leases[i].DeepCopy()
		l.Name, l.UID, l.Labels = l.Name+"-old", l.UID+"-old", nil
		whole.Leases = append(whole.Leases, closed(l, 2*time.Minute, rqv1.ClosedCompleted))
	}
	for _, of := range whole.Budgets {
		at := metav1.NewTime(noon)
		of.Status.ObservedAt, of.Status.Envelopes[0].GPUHours = &at, &rqv1.GPUHours{}
	}
	for name, w := range map[string]*audit.World{"open": open, "whole": whole} {
		b.Run(name, func(b *testing.B) {
			r := rules(b)
			for b.Loop() {
				found := audit.Standing(r.Look(w), r.Look(w))
				for i := range found {
					if w == open || found[i].Invariant != "I8" {
						b.Fatalf("found %+v", found[i])
					}
				}
			}
		})
	}
}
