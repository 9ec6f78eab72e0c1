package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is done at an event, or at a look at the clock, does not grow with the number of those who wait.
func TestTheWorkOfAnEventDoesNotGrowWithThoseWhoWait(t *testing.T) {
	few, many := looksAmong(t, 300), looksAmong(t, 1200)
	for what, n := range many {
		if n > few[what]+5 {
			t.Errorf("%s: %d gangs are looked at of 1,200, %d of 300", what, n, few[what])
		}
	}
}

// looksAmong has so many Runs wait for a full fleet, and returns how many gangs are looked at in what happens then.
func looksAmong(t *testing.T, waiting int) map[string]int64 {
	f := newFleetOf(t)
	f.fill(func(int, []*corev1.Pod) {})
	var first *corev1.Pod
	for i := range waiting {
		lead := f.run(2000+i, 1+i%4, nil)[0]
		if _, refusal := f.book.Place(lead.UID, f.now); refusal == nil {
			t.Fatal("a Run fits a full fleet")
		}
		f.book.Refused(lead.UID, f.now)
		if first == nil {
			first = lead
		}
	}
	for range waiting / 100 {
		f.now = f.now.Add(time.Second)
		f.book.WorkOutNext(f.now, 0) // tells some their places
	}
	f.book.ToQueue().Take()
	out := map[string]int64{}
	count := func(what string, happens func()) {
		before := f.book.Looks()
		happens()
		out[what] = f.book.Looks() - before
	}
	count("a node comes", func() { f.addNode("new") })
	if woken := f.book.ToQueue().Take().Activate; len(woken) != 1 || woken[0].UID != first.UID {
		t.Fatalf("there is room for one pod, and %d Runs are woken", len(woken))
	}
	count("the oldest takes it", func() {
		if _, refusal := f.book.Place(first.UID, f.now); refusal != nil {
			t.Fatal(refusal)
		}
	})
	count("a Budget is edited", func() {
		b := f.budgetOf(7)
		b.Generation, b.Spec.Envelopes[0].Concurrency = 2, 200000
		f.book.Budgets.SetBudget(b)
	})
	f.now = f.now.Add(time.Second)
	count("the clock", func() { f.book.Advance(f.now); f.book.Next(f.now) })
	count("a forecast", func() { f.book.WorkOutNext(f.now, 0) })
	return out
}

// addNode adds a node of the first domain.
func (f *fleetOf) addNode(name string) {
	f.book.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"region": "r0", "cluster": "c0", "fabric.domain": "d00", "gpu.flavor": flavor}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(8, resource.DecimalSI)}},
	})
}
