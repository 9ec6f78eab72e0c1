package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// TestARefusalIsWhatTheReasonSays publishes, of a Run that waits, the refusal that the condition Started tells of, and
// none where that tells of something else.
func TestARefusalIsWhatTheReasonSays(t *testing.T) {
	noRoom := &plan.Refusal{Reason: plan.InsufficientGPUs, Owner: "org:a", WantedGPUs: 32, ShortGPUs: 8,
		Message: "short by 8"}
	for name, c := range map[string]struct {
		reason string
		want   *rqv1.RunRefusal
		edit   func(*Observed)
	}{
		"no room": {"InsufficientGPUs", noRoom.Published(), func(o *Observed) { o.pods("-", "-", "-", "-") }},
		"no shape": {"Unsupported", &rqv1.RunRefusal{Reason: "Unsupported"},
			func(o *Observed) { o.Shape = &plan.Refusal{Reason: plan.Unsupported, Message: "no"} }},
		"a quota": {"NotCreated", &rqv1.RunRefusal{Reason: "NotCreated", Owner: "org:a", WantedGPUs: 32},
			func(o *Observed) { o.pods("-", "-", "-", ""); o.Problem = "cannot create pods: exceeded quota" }},
		"its turn": {"Activating", nil, func(o *Observed) {
			o.pods("-", "-", "-", "-")
			o.Reservations = []*rqv1.Reservation{{Status: rqv1.ReservationStatus{State: rqv1.ReservationActivating}}}
		}},
		"an edit": {"Edited", nil, func(o *Observed) {
			o.pods("n0", "-", "-", "-")
			o.leases(time.Second, map[int]string{0: "n0"})
			o.Run.Spec.Owner = "org:b"
		}},
		"an end": {"Requeued", nil, func(o *Observed) {
			o.pods("n0", "-", "n2", "n3")
			started(o)
			o.Leases = append(o.Leases[:1:1], o.Leases[2:]...)
			o.Run.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}}
		}},
		"a growth": {"Started", nil, func(o *Observed) {
			o.pods("n0", "n1", "n2", "n3")
			o.leases(time.Second, everywhere())
			o.Run.Status.Refusal = noRoom.Published()
		}},
	} {
		o := scene(func(o *Observed) { o.Refusal = noRoom; c.edit(o) })
		status := Decide(o).Status
		if status == nil {
			t.Fatalf("%s: nothing is said", name)
		}
		if got := meta.FindStatusCondition(status.Conditions, rqv1.ConditionStarted).Reason; got != c.reason {
			t.Errorf("%s: the reason is %s, want %s", name, got, c.reason)
		}
		if diff := cmp.Diff(c.want, status.Refusal); diff != "" {
			t.Errorf("%s: the refusal (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhoIsDeletedIsRefusedNothing: it waits for nothing any more.
func TestWhoIsDeletedIsRefusedNothing(t *testing.T) {
	o := scene(func(o *Observed) {
		o.Run.DeletionTimestamp, o.Run.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/keep"}
		o.Run.Status.Refusal = &rqv1.RunRefusal{Reason: "InsufficientBudget", WantedGPUs: 32, ShortGPUs: 8}
	})
	if d := Decide(o); d.Status == nil || d.Status.Refusal != nil {
		t.Errorf("%+v", d.Status)
	}
}

// TestNothingIsSaidWhileItIsTriedAgain: between the refusal of a Run and its start there is no news. An edit is: what
// was said was about other terms.
func TestNothingIsSaidWhileItIsTriedAgain(t *testing.T) {
	refused := scene(func(o *Observed) {
		o.pods("-", "-", "-", "-")
		o.Refusal = &plan.Refusal{Reason: plan.InsufficientBudget, Message: "budget b is short by 8 of 32 GPUs", ShortGPUs: 8}
	})
	said := Decide(refused).Status
	if said == nil {
		t.Fatal("it is not told why it is refused")
	}
	tried := func(edit func(run *rqv1.Run)) Observed {
		return scene(func(o *Observed) {
			o.pods("-", "-", "-", "-")
			o.Run.Status = *said
			edit(o.Run)
		})
	}
	if d := Decide(tried(func(*rqv1.Run) {})); d.Status != nil {
		t.Errorf("it is said %q meanwhile", d.Status.Message)
	}
	if d := Decide(tried(func(r *rqv1.Run) { r.Generation++ })); d.Status == nil || d.Status.Message != Waiting ||
		d.Status.Refusal != nil {
		t.Errorf("after an edit it is said %+v", d.Status)
	}
}
