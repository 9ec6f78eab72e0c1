package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// runsFor is a Run of four ranks that has run for a while.
func runsFor(d time.Duration) Observed {
	o := scene(func(o *Observed) {
		started(o)
		o.pods("n0", "n1", "n2", "n3")
		o.leases(d, everywhere())
	})
	o.Run.Status.Conditions = append(o.Run.Status.Conditions, metav1.Condition{Type: rqv1.ConditionStarted,
		Status: metav1.ConditionTrue, Reason: "Started", LastTransitionTime: metav1.NewTime(o.Now.Add(-d))})
	return o
}

// guarded tells what becomes of the Run's PodDisruptionBudget, which is there from then on.
func guarded(o *Observed) string {
	d := Decide(*o)
	switch {
	case d.Guard != nil:
		o.Guards = []*policyv1.PodDisruptionBudget{d.Guard}
		return "at least " + d.Guard.Spec.MinAvailable.String()
	case d.Unguard != nil:
		o.Guards = nil
		return "none"
	}
	return ""
}

// TestGuard follows a Run from its start on, while nodes under its ranks are emptied.
func TestGuard(t *testing.T) {
	o := runsFor(time.Second)
	two := []book.DrainedRank{{Index: 0, Node: "n0"}, {Index: 1, Node: "n1"}}
	for _, step := range []struct {
		does string
		do   func()
		want string
	}{
		{"it has just started", func() {}, ""},
		{"a minute is over", func() { o.Now = o.Now.Add(time.Minute) }, "at least 4"},
		{"nothing changes", func() { o.Now = o.Now.Add(time.Minute) }, ""},
		{"two ranks are to move, and have nowhere to go", func() { o.Drain = book.Drain{Ranks: two, Why: "short by 8"} }, ""},
		{"the first of them could", func() { o.Drain = book.Drain{Ranks: two} }, "at least 3"},
		{"and could still", func() {}, ""},
		{"one of them is told to go", func() {
			o.Pods[0].DeletionTimestamp = &metav1.Time{Time: o.Now}
			o.Drain = book.Drain{Moving: true}
		}, "at least 4"},
		{"the book has not seen that", func() { o.Drain = book.Drain{Ranks: two} }, ""},
		{"it is elsewhere", func() {
			o.Pods[0].DeletionTimestamp, o.Pods[0].Spec.NodeName = nil, "n4"
			o.Leases[0].Spec.Slice.Nodes[0].Name = "n4"
			o.Nodes["n4"] = book.NodeState{Stands: true, Accepts: true}
			o.Drain = book.Drain{Ranks: two[1:], Why: "short by 8"}
		}, ""},
		{"one has done its work", func() {
			o.Drain = book.Drain{}
			o.Pods[2].Status.Phase = corev1.PodSucceeded
		}, "at least 3"},
		{"somebody has one of their own", func() {
			o.Guards = append(o.Guards, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "mine"},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}})
		}, "none"},
	} {
		step.do()
		if diff := cmp.Diff(step.want, guarded(&o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.does, diff)
		}
	}
}

// TestWhoIsNotGuarded: whose evictions nobody is to be kept from.
func TestWhoIsNotGuarded(t *testing.T) {
	for name, change := range map[string]func(o *Observed){
		"an opportunistic Run": func(o *Observed) { o.Run.Spec.Opportunistic = true },
		"one whose name a budget of somebody's has": func(o *Observed) {
			o.Guards = []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Name: o.Run.Name}}}
		},
		"one that has ended": func(o *Observed) { o.Run.Status.Phase = rqv1.RunFailed },
		"one that waits":     func(o *Observed) { o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunPending} },
	} {
		o := runsFor(time.Hour)
		change(&o)
		if got := guarded(&o); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestDrainWaits has a Run tell, once, that a drain waits, and that it does not any more.
func TestDrainWaits(t *testing.T) {
	o := runsFor(time.Hour)
	waits := func() string {
		if d := Decide(o); d.Status != nil {
			o.Run.Status = *d.Status
		}
		if c := meta.FindStatusCondition(o.Run.Status.Conditions, rqv1.ConditionDrainWaits); c != nil {
			return string(c.Status) + " " + c.Message
		}
		return ""
	}
	if got := waits(); got != "" {
		t.Errorf("without reason: %s", got)
	}
	o.Drain = book.Drain{Ranks: []book.DrainedRank{{Index: 1, Node: "n1"}}, Why: "rank 1 has nowhere to go"}
	if got := waits(); got != "True the drain of n1 waits: rank 1 has nowhere to go" {
		t.Errorf("%s", got)
	}
	if d := Decide(o); d.Status != nil {
		t.Errorf("it is told again: %+v", d.Status)
	}
	o.Drain = book.Drain{}
	if got := waits(); !strings.HasPrefix(got, "False ") {
		t.Errorf("afterwards: %s", got)
	}
}
