package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// exits has the one container of a pod end with an exit code.
func exits(pod *corev1.Pod, code int32, at time.Time) {
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(at)}}}}
}

// causesOf returns by whose doing ranks died, and Leases close, by name.
func causesOf(d Decision) map[string]rqv1.EndCause {
	out := map[string]rqv1.EndCause{}
	for _, death := range d.Status.Deaths {
		out[string(death.Pod)] = death.Cause
	}
	for _, c := range d.Close {
		out[c.Lease.Name] = c.Cause
	}
	return out
}

// TestWhoWasToldToGo is not said to have failed by its own: a program that is told to go dies of the signal.
func TestWhoWasToldToGo(t *testing.T) {
	all := map[int]string{0: "n0", 1: "n1", 2: "n2", 3: "n3"}
	for name, c := range map[string]struct {
		observed Observed
		want     map[string]rqv1.EndCause
	}{
		"since its Run has failed": {scene(func(o *Observed) {
			o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunFailed, Message: "it broke"}
			o.pods("n0 Failed", "n1 deleting", "n2 deleting", "n3 deleting")
			o.leases(time.Hour, all)
			exits(o.Pods[0], 1, noon.Add(-time.Minute))
			for _, pod := range o.Pods[1:] {
				exits(pod, 143, noon)
			}
		}), map[string]rqv1.EndCause{"00000000": rqv1.CauseProgram, "lease-0": rqv1.CauseProgram,
			"lease-1": rqv1.CauseScheduler, "lease-2": rqv1.CauseScheduler, "lease-3": rqv1.CauseScheduler}},
		"by somebody": {scene(func(o *Observed) {
			o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunRunning}
			o.pods("n0", "n1 deleting", "n2", "n3")
			o.leases(time.Hour, all)
			exits(o.Pods[1], 143, noon)
		}), map[string]rqv1.EndCause{"lease-1": rqv1.CauseUser}},
		"by whoever drains its node": {scene(func(o *Observed) {
			o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunRunning}
			o.pods("n0", "n1 deleting", "n2", "n3")
			o.leases(time.Hour, all)
			exits(o.Pods[1], 143, noon)
			o.Pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget,
				Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
		}), map[string]rqv1.EndCause{"00000001": rqv1.CauseNode, "lease-1": rqv1.CauseNode}},
	} {
		if diff := cmp.Diff(c.want, causesOf(Decide(c.observed))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A rank has been told that it is to go, as before maintenance, and the API server did not delete it. Who dies by its
// own doing since then is started again as ever.
func TestARankThatDiesAfterAVainNotice(t *testing.T) {
	o := manyRanks(t, func(*rqv1.RunRuntime) {})
	pod := o.Pods[1]
	exits(pod, 1, noon)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget,
		Status: corev1.ConditionTrue, Reason: string(rqv1.ClosedMaintenance), LastTransitionTime: metav1.NewTime(noon)})
	if o.decide(); o.Run.Status.Phase != rqv1.RunRunning {
		t.Fatalf("the Run is %s: %s", o.Run.Status.Phase, o.Run.Status.Message)
	}
}
