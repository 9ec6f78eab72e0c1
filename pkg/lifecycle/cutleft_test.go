package lifecycle

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// What is left of a Run that was cut by lottery goes, also where it was wider then than it asks for, and what had
// ended: every rank runs again. It does not matter when a process dies, or when the Reservation is over.
func TestAllOfACutRunGoes(t *testing.T) {
	for name, edit := range map[string]func(*Observed){
		"it had grown beyond its total": func(o *Observed) {
			o.Run.Spec.Resources.TotalGPUs = 16
			desired := int32(32)
			o.Run.Spec.Malleable.DesiredTotalGPUs = &desired
		},
		"a rank had ended": func(o *Observed) {
			o.Pods[1].Status.Phase = corev1.PodSucceeded
			o.Leases = without(o.Leases, o.Leases[1])
		},
	} {
		for steps := 1; steps < 8; steps++ {
			for _, over := range []bool{false, true} {
				o := victim([]rank.Cut{cut(rqv1.CutLottery, nil)}, checkpointed)
				edit(&o)
				old := slices.Clone(o.Pods)
				o.carryOut(Decide(o), steps)
				if groups := int(o.Run.Spec.Resources.TotalGPUs) / 16; groups < o.Demand.Groups {
					o.Demand.Groups = groups // the book plans a Run that waits at its total
				}
				if over {
					o.Cuts = nil
				}
				for range 6 {
					o.carryOut(Decide(o), -1)
				}
				for _, pod := range old {
					if slices.Contains(o.Pods, pod) {
						t.Errorf("%s: killed after %d steps, Reservation over: %v: pod %s stays", name, steps, over, pod.Name)
					}
				}
			}
		}
	}
}

// What had failed of a Run that was cut is not taken for a failure of its next start, also where the news that it is
// told to go comes after those of the status.
func TestWhatIsLeftOfACutRunIsNoFailure(t *testing.T) {
	o := victim([]rank.Cut{cut(rqv1.CutLottery, nil)}, checkpointed)
	o.carryOut(Decide(o), 1)
	o.Cuts, o.Leases, o.Pods = nil, nil, o.Pods[1:2]
	o.Pods[0].Status.Phase = corev1.PodFailed
	o.Refusal = &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "short by 8"}
	for range 3 {
		d := Decide(o)
		if !slices.ContainsFunc(d.Delete, func(d Deletion) bool { return d.Pod == o.Pods[0] }) {
			t.Errorf("it stays: %s", story(d))
		}
		if d.Status != nil {
			o.Run = o.Run.DeepCopy()
			o.Run.Status = *d.Status
		}
	}
	if o.Run.Status.Phase != rqv1.RunPending {
		t.Errorf("the Run is %s: %s", o.Run.Status.Phase, o.Run.Status.Message)
	}
}
