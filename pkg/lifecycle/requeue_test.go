package lifecycle

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// TestRoomKept follows the condition by which a requeued Run keeps its room: it is written before a pod is deleted, is
// of the last requeue, and ends with a start or in time. A Run that was cut, or whose gang was overdue, never has it.
func TestRoomKept(t *testing.T) {
	lost := func(o *Observed) {
		o.pods("n0", "-", "n2", "n3")
		started(o)
		o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
		o.Lost = map[int]string{1: "gone"}
		o.Run.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}}
	}
	kept := func(o *Observed) {
		o.Run.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionRoomKept, Status: metav1.ConditionTrue,
			Reason:             "Requeued",
			LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	}
	for name, test := range map[string]struct {
		observed Observed
		want     string // status, reason and age of the condition
		first    bool
	}{
		"no room": {scene(func(o *Observed) {
			lost(o)
			o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
		}), "True Requeued 0s", true},
		"no node was lost": {scene(func(o *Observed) {
			lost(o)
			o.Lost = nil
			o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
		}), "", true},
		"again": {scene(func(o *Observed) {
			lost(o)
			kept(o)
			o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
		}), "True Requeued 0s", true},
		"cut": {scene(func(o *Observed) {
			lost(o)
			o.Run.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
			o.Cuts = []rank.Cut{cut(rqv1.CutLottery, nil)}
		}), "", true},
		"overdue": {scene(func(o *Observed) {
			o.pods("n0", "-", "-", "-")
			o.leases(2*time.Minute, map[int]string{0: "n0"})
		}), "", false},
		"it waits": {scene(func(o *Observed) {
			o.pods("-", "-", "-", "-")
			kept(o)
		}), "True Requeued 1h0m0s", false},
		"its time is over": {scene(func(o *Observed) {
			o.pods("-", "-", "-", "-")
			kept(o)
			o.RoomLapsed = true
		}), "False Lapsed 0s", false},
		"it has started": {scene(func(o *Observed) {
			o.pods("n0", "n1", "n2", "n3")
			o.leases(time.Second, everywhere())
			kept(o)
		}), "False Started 0s", false},
	} {
		d := Decide(test.observed)
		status := d.Status
		if status == nil {
			status = &test.observed.Run.Status
		}
		got := ""
		if c := meta.FindStatusCondition(status.Conditions, rqv1.ConditionRoomKept); c != nil {
			got = string(c.Status) + " " + c.Reason + " " + noon.Sub(c.LastTransitionTime.Time).String()
		}
		if name == "cut" && status.Phase != rqv1.RunPending {
			t.Errorf("cut: the Run is %s", status.Phase)
		}
		if got != test.want || d.TellFirst() != test.first {
			t.Errorf("%s: the condition is %q, want %q; told first: %v; %s", name, got, test.want, d.TellFirst(), status.Message)
		}
	}
}
