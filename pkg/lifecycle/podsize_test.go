package lifecycle

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// TestTheSizeOfPodsIsSaidWhileItStands: from the first pod on, and without one as long as room is kept for pods of that
// size.
func TestTheSizeOfPodsIsSaidWhileItStands(t *testing.T) {
	was := func(o *Observed) {
		o.Run.Status.Phase, o.Run.Status.GPUsPerPod = rqv1.RunPending, 8
		o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs}
	}
	keptUntil := func(lapsed bool) func(o *Observed) {
		return func(o *Observed) {
			was(o)
			o.Run.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionRoomKept, Status: metav1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(noon)}}
			o.RoomLapsed = lapsed
		}
	}
	for name, c := range map[string]struct {
		edit func(o *Observed)
		want int32
	}{
		"it waits with a pod": {func(o *Observed) {
			o.pods("-")
			o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs}
		}, 8},
		"its pods are refused": {func(o *Observed) {
			o.pods("-")
			o.Refusal = &plan.Refusal{Reason: plan.NotCreated}
		}, 0},
		"others' pods that wait for more of them": {func(o *Observed) {
			o.Run.Spec.Source = rqv1.SourcePods
			o.pods("-")
			o.Refusal = &plan.Refusal{Reason: plan.HeldInVain}
		}, 8},
		"it has no pods any more": {was, 0},
		"room is kept for it":     {keptUntil(false), 8},
		"room was kept for it":    {keptUntil(true), 0},
	} {
		o := scene(c.edit)
		d := Decide(o)
		got := o.Run.Status.GPUsPerPod
		if d.Status != nil {
			got = d.Status.GPUsPerPod
		}
		if got != c.want {
			t.Errorf("%s: %d GPUs per pod, want %d", name, got, c.want)
		}
	}
}
