package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// overtime is a Run with spares whose maxDuration is over just now and that asks to wait again then.
func overtime(edit func(*Observed)) Observed {
	return victim(nil, func(o *Observed) {
		o.Run.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Hour},
			Checkpoint: &metav1.Duration{Duration: time.Minute}, OnTimeout: rqv1.TimeoutRequeue}
		if edit != nil {
			edit(o)
		}
	})
}

const overtimeTold = "ran for its maxDuration of 1h0m0s; it starts again from its checkpoint, and has its place in " +
	"line since 2026-03-01T12:00:00Z"

// standing tells where a status has a Run be: its phase, the reason of the condition Started, and its time-outs.
func standing(s *rqv1.RunStatus) string {
	text := string(s.Phase)
	if c := meta.FindStatusCondition(s.Conditions, rqv1.ConditionStarted); c != nil {
		text += " " + c.Reason
	}
	if s.PlaceSince != nil {
		text += fmt.Sprintf(", place since %s", s.PlaceSince.Sub(noon))
	}
	if t := s.Timeouts; t != nil {
		text += fmt.Sprintf(", %d time-outs, attempt %d ended %s", t.Count, t.Attempt, t.Last.Sub(noon))
	}
	if meta.IsStatusConditionTrue(s.Conditions, rqv1.ConditionRoomKept) {
		text += ", room kept"
	}
	return text
}

// TestARunWaitsAgainAfterItsMaxDuration, with another attempt, at the end of the line, and keeps nothing.
func TestARunWaitsAgainAfterItsMaxDuration(t *testing.T) {
	for name, test := range map[string]struct {
		edit  func(*Observed)
		want  string
		story string
	}{
		"its time is over": {nil, "Pending TimedOut, place since 0s, 1 time-outs, attempt 0 ended 0s",
			"delete run-0; delete run-1; delete run-2; delete run-3; delete run-s0; delete run-s1; Pending: " + overtimeTold},
		"once more": {func(o *Observed) {
			was := metav1.NewTime(noon.Add(-2 * time.Hour))
			o.Run.Status.Attempt, o.Run.Status.PlaceSince = 3, &was
			o.Run.Status.Timeouts = &rqv1.RunTimeouts{Count: 2, Last: was, Attempt: 2}
			for _, l := range o.Leases {
				l.Spec.Attempt = 3
			}
		}, "Pending TimedOut, place since 0s, 3 time-outs, attempt 3 ended 0s", ""},
		"it has a second left": {func(o *Observed) { o.Now = noon.Add(-time.Second) }, "Running Started", ""},
		"it is to fail": {func(o *Observed) { o.Run.Spec.Runtime.OnTimeout = rqv1.TimeoutFail }, "Failed Started",
			"delete run-0; delete run-1; delete run-2; delete run-3; delete run-s0; delete run-s1; Failed: ran for its " +
				"maxDuration of 1h0m0s"},
		"it is suspended at that time": {func(o *Observed) { o.Run.Spec.Suspend = true },
			"Pending Suspended, place since 0s, 1 time-outs, attempt 0 ended 0s", ""},
		"it is drawn at that time": {func(o *Observed) { o.Cuts = []rank.Cut{cut(rqv1.CutLottery, nil)} },
			"Pending RandomPreempt", ""},
		"it has lost a rank that finds no room": {func(o *Observed) {
			o.Pods, o.Leases = slices.Delete(o.Pods, 1, 2), slices.Delete(o.Leases, 1, 2)
			o.Lost = map[int]string{1: "gone"}
			o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
		}, "Pending TimedOut, place since 0s, 1 time-outs, attempt 0 ended 0s", ""},
		"it has completed": {func(o *Observed) {
			for _, pod := range o.Pods[:4] {
				pod.Status.Phase = corev1.PodSucceeded
			}
		}, "Completed Started", ""},
		"its program has failed for good": {func(o *Observed) {
			o.Run.Spec.Runtime.Restarts = &rqv1.RunRestarts{Limit: new(int32)}
			o.Pods[1].Status.Phase = corev1.PodFailed
		}, "Failed Started", ""},
		"there is no node left that it fits": {func(o *Observed) {
			o.Shape, o.Demand = &plan.Refusal{Reason: plan.Unsupported, Message: "no shape"}, plan.Demand{}
		}, "Pending Unsupported, place since 0s, 1 time-outs, attempt 0 ended 0s", ""},
	} {
		o := overtime(test.edit)
		d := Decide(o)
		got := standing(d.Status)
		if got != test.want || test.story != "" && story(d) != test.story {
			t.Errorf("%s: %s\n%s\nwant %s\n%s", name, got, story(d), test.want, test.story)
		}
		if d.Status.Timeouts != nil && (!d.TellFirst() || d.Status.Attempt != o.Run.Status.Attempt+1) {
			t.Errorf("%s: told first: %v, attempt %d", name, d.TellFirst(), d.Status.Attempt)
		}
		for _, deletion := range d.Delete {
			if deletion.Notice != nil && len(o.Cuts) == 0 {
				t.Errorf("%s: pod %s is told that it is cut", name, deletion.Pod.Name)
			}
		}
	}
}

// TestAllOfARunGoesWhoseTimeIsOver wherever the process dies, also what has ended, and is told so in the ledger; then
// it starts again as it was.
func TestAllOfARunGoesWhoseTimeIsOver(t *testing.T) {
	for steps := range 9 {
		o := overtime(func(o *Observed) {
			o.Pods[1].Status.Phase = corev1.PodSucceeded
			o.Leases = without(o.Leases, o.Leases[1])
		})
		old, closed := slices.Clone(o.Pods), map[rqv1.ClosureReason]int{}
		o.carryOut(Decide(o), steps)
		for range 6 {
			d := Decide(o)
			for _, c := range d.Close {
				closed[c.Reason]++
			}
			o.carryOut(d, -1)
		}
		for _, pod := range old {
			if slices.Contains(o.Pods, pod) {
				t.Errorf("killed after %d steps: pod %s stays", steps, pod.Name)
			}
		}
		if diff := cmp.Diff(map[rqv1.ClosureReason]int{rqv1.ClosedTimedOut: 5}, closed); diff != "" {
			t.Errorf("killed after %d steps, Leases close so (-want +got):\n%s", steps, diff)
		}
		want := "Pending TimedOut, 1 time-outs, attempt 0 ended 0s" // the book would say what place it has
		if got := standing(&o.Run.Status); got != want || o.Run.Status.Attempt != 1 || len(o.Pods) != len(old) {
			t.Errorf("killed after %d steps: %s, attempt %d, %d pods", steps, got, o.Run.Status.Attempt, len(o.Pods))
		}
	}
}

// TestWhyItWaitsIsSaidUntilSomethingElseIs: the count stays, and what comes of the Run is told as of any that waits.
func TestWhyItWaitsIsSaidUntilSomethingElseIs(t *testing.T) {
	o := overtime(nil)
	o.carryOut(Decide(o), -1)
	o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
	if d := Decide(o); d.Status != nil && d.Status.Message != overtimeTold {
		t.Errorf("while its pods end: %s", story(d))
	}
	for range 3 {
		o.carryOut(Decide(o), -1)
	}
	if got := standing(&o.Run.Status); got != "Pending InsufficientGPUs, 1 time-outs, attempt 0 ended 0s" {
		t.Errorf("refused: %s", got)
	}
}
