package book_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// TestManyAskAtOnce has the plugin, the controllers and the watches ask and tell the book at the same time, as they do,
// for the race detector to look on. Nothing else in the pure packages ever runs at once.
func TestManyAskAtOnce(t *testing.T) {
	f := newFleetOf(t)
	f.book.AskRules()
	f.run(0, 2, []int{0, 1})
	f.run(5, 2, []int{2, 3}) // elastic
	pods := f.run(1, 4, nil)
	running := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run0001", UID: "uid-run0001"}}
	f.refuse(f.run(2, 6000, nil))
	uid, name, pod := types.UID("uid-run0001"), types.NamespacedName{Namespace: "ns", Name: "run0001"}, pods[0]
	run := &rqv1.Run{}
	run.Namespace, run.Name, run.UID, run.Generation = "ns", "new", "uid-new", 1
	run.Spec = rqv1.RunSpec{Owner: "org:t1", Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: 8}}
	seen := book.Objects{Name: name, Run: running, Pods: pods}
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 20 {
			f.run(10+i, 2, []int{10 + 2*i, 11 + 2*i}) // a Run, its pods and their Leases are told
		}
	})
	for _, do := range []func(){ // one call each, so that nothing else orders what it does
		func() { f.book.SetRun(run.DeepCopy()) },
		func() { f.book.DeleteRun(run) },
		func() {
			f.book.Place(pod.UID, f.now)
			f.book.Turn(pod.UID, f.now)
			if check := f.book.Check(uid, f.now); check != nil {
				f.book.Conclude(check, nil, false, f.now)
			}
		},
		func() { f.book.Knows(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}) },
		func() { f.book.WhatIf(run, f.now) },
		func() { f.book.SetMember(pods[1]) },
		func() { f.book.SetPod(pods[2]) },
		func() { f.book.Prospect(uid) },
		func() { f.book.Refusal(uid) },
		func() { f.book.Lapse(f.now) },
		func() { f.book.GrowRuns(f.now) },
		func() { f.book.Fill(f.now) },
		func() { f.book.RefreshPromises(f.now) },
		func() { f.book.NextDue() },
		func() { f.book.Due(f.now) },
		func() { f.book.Next(f.now) },
		func() { f.book.Budgets.RefreshBudgets(f.now) },
		func() { f.book.GPUsByRole() },
		func() { f.book.LeftOutNodes() },
		func() { f.book.OpenLeases() },
		func() { f.book.CutsWithinHour(f.now) },
		func() { f.book.TakeActions() },
		func() { f.book.Assess(uid, f.now) },
		func() { f.book.Look(seen) },
		func() { f.book.Budgets.Settle("b1", f.now) },
		func() { f.book.Budgets.Charged() },
	} {
		all.Go(func() {
			for range 20 {
				do()
			}
		})
	}
	all.Wait()
	if _, known := f.book.Look(seen); !known {
		t.Error("the book has forgotten a Run")
	}
}
