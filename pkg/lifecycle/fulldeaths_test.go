package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// manyRanks is a Run of more ranks than its status tells deaths of, all of them ready.
func manyRanks(t *testing.T, edit func(*rqv1.RunRuntime)) Observed {
	t.Helper()
	o := wide(t, rqv1.MostDeaths+4)
	o.Run.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: 10 * time.Minute}}
	edit(o.Run.Spec.Runtime)
	for _, pod := range o.Pods {
		readies(pod, corev1.ConditionTrue, noon.Add(-time.Hour))
	}
	return o
}

// decide decides some times over, as events have it looked at again, and keeps what is written of the status.
func (o *Observed) decide() (d Decision) {
	for range 4 {
		if d = Decide(*o); d.Status != nil {
			o.Run = o.Run.DeepCopy()
			o.Run.Status = *d.Status
		}
	}
	return d
}

// No rank is ready in time, as when images cannot be pulled: all of them are started again, not just those of which the
// status tells.
func TestAllRanksThatAreNotReadyInTimeAreRestarted(t *testing.T) {
	o := manyRanks(t, func(r *rqv1.RunRuntime) { r.StartupDeadline = &metav1.Duration{Duration: 59 * time.Minute} })
	for _, pod := range o.Pods {
		readies(pod, corev1.ConditionFalse, noon.Add(-time.Hour))
	}
	gone := map[string]bool{}
	for range 4 {
		d := o.decide()
		for _, deletion := range d.Delete {
			gone[deletion.Pod.Name] = true
		}
		o.Pods = o.without(gone)
		o.Now = o.Now.Add(time.Second)
	}
	if len(gone) != rqv1.MostDeaths+4 {
		t.Fatalf("%d of %d ranks are started again: %s", len(gone), rqv1.MostDeaths+4, o.Run.Status.Message)
	}
}

func (o *Observed) without(gone map[string]bool) (left []*corev1.Pod) {
	for _, pod := range o.Pods {
		if !gone[pod.Name] {
			left = append(left, pod)
		}
	}
	return left
}

// All of their Leases say so, also those of which the status does not tell: they go by what the pods were as they were
// told to go, which the API server notes in whole seconds.
func TestAllLeasesSayThatTheirRanksWereNotReadyInTime(t *testing.T) {
	o := manyRanks(t, func(r *rqv1.RunRuntime) { r.StartupDeadline = &metav1.Duration{Duration: time.Hour} })
	for _, pod := range o.Pods {
		readies(pod, corev1.ConditionFalse, noon.Add(-time.Hour))
	}
	for _, lease := range o.Leases {
		lease.Spec.Start = metav1.NewMicroTime(noon.Add(-time.Hour).Add(500 * time.Millisecond))
	}
	o.Now = noon.Add(600 * time.Millisecond)
	o.decide()
	o.Left = map[types.UID]*corev1.Pod{}
	for i, pod := range o.Pods {
		pod.DeletionTimestamp = &metav1.Time{Time: noon}
		if i == rqv1.MostDeaths { // and of one of them its user was quicker
			pod.DeletionTimestamp = &metav1.Time{Time: noon.Add(-time.Second)}
		}
		o.Left[pod.UID] = pod
	}
	o.Pods = nil
	closings := Decide(o).Close
	if len(closings) != len(o.Leases) {
		t.Fatalf("%d of %d Leases close", len(closings), len(o.Leases))
	}
	for i, c := range closings {
		reason, cause := rqv1.ClosedFailed, rqv1.CauseProgram
		if i == rqv1.MostDeaths {
			reason, cause = rqv1.ClosedDeleted, rqv1.CauseUser
		}
		if c.Reason != reason || c.Cause != cause {
			t.Errorf("%s closes as %s by the doing of %s, want %s by that of %s", c.Lease.Name, c.Reason, c.Cause, reason, cause)
		}
	}
}

// startsAgain has the kubelet of a pod have started its container so often, the last time at an instant.
func startsAgain(pod *corev1.Pod, times int32, at time.Time) {
	began := noon.Add(-time.Hour)
	if times > 1 {
		began = at.Add(-time.Second)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: times,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error",
			StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(at)}}}}
	readies(pod, corev1.ConditionFalse, at)
}

// Kubelets start the containers of all ranks again. Once all are ready the incident is over, also when the status had
// no room for all of those deaths: what comes after long quiet does not count with it.
func TestAnIncidentEndsOfWhichTheStatusDoesNotTellAll(t *testing.T) {
	o := manyRanks(t, func(*rqv1.RunRuntime) {})
	for times := range int32(2) { // each of them twice in it
		o.Now = noon.Add(time.Duration(times) * time.Second)
		for _, pod := range o.Pods {
			startsAgain(pod, times+1, o.Now)
		}
		o.decide()
	}
	if r := o.Run.Status.Restarts; r == nil || r.Incidents != 1 || r.Ready != nil {
		t.Fatalf("the status tells of %+v, want one incident", r)
	}
	for _, pod := range o.Pods {
		readies(pod, corev1.ConditionTrue, noon.Add(time.Minute))
	}
	o.Now = noon.Add(time.Hour)
	o.decide()
	if r := o.Run.Status.Restarts; r.Ready == nil || !r.Ready.Time.Equal(o.Now) {
		t.Fatalf("all ranks are ready since an hour, and the status tells of %+v", r)
	}
	o.Now = noon.Add(2 * time.Hour)
	startsAgain(o.Pods[3], 3, o.Now)
	o.decide()
	if r := o.Run.Status.Restarts; r.Incidents != 2 || r.Counted != 1 || deathAfter(o.Run, o.Pods[3], 3) == nil {
		t.Fatalf("rank 3 died an hour later, and the status tells of %+v", r)
	}
	readies(o.Pods[3], corev1.ConditionTrue, o.Now.Add(time.Minute))
	o.Now = noon.Add(3 * time.Hour)
	o.decide()
	if r := o.Run.Status.Restarts; r.Incidents != 2 || r.Ready == nil {
		t.Fatalf("all ranks are ready since another hour, and the status tells of %+v", r)
	}
}

// After an incident in which many ranks died, what a node does to one of them is told all the same: three nodes that
// turn a rank away end the Run, and a rank that leaves a broken device is not tried there again. Who was the first to
// die is remembered as well: it is blamed if it is the first again.
func TestWhatNodesDoIsToldAfterManyHaveDied(t *testing.T) {
	o := manyRanks(t, func(*rqv1.RunRuntime) {})
	ended := metav1.NewTime(noon.Add(-20 * time.Minute))
	ready := metav1.NewTime(ended.Add(time.Minute))
	o.Run.Status.Restarts = &rqv1.RunRestartsStatus{Incidents: 1, Counted: 1, Began: ended, Ready: &ready}
	for i := range rqv1.MostDeaths {
		o.Run.Status.Deaths = append(o.Run.Status.Deaths, rqv1.RunDeath{Pod: o.Pods[i].UID + "-before", Index: int32(i),
			Node: fmt.Sprintf("n%d", i), Cause: rqv1.CauseProgram, Sign: "Error", ExitCode: 1, At: ended, Incident: 1,
			First: i == 0, Action: rqv1.ActionRestart})
	}
	o.Pods[3].Status.Phase, o.Pods[3].Status.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
	o.decide()
	if deathOf(o.Run, o.Pods[3]) == nil {
		t.Fatalf("the status does not tell that a node has turned rank 3 away: %+v", o.Run.Status.Deaths)
	}
	if !o.Run.Status.Deaths[0].First {
		t.Fatalf("the status does not tell who was the first to die: %+v", o.Run.Status.Deaths)
	}
}

// What is told first of all that there is no room for.
func TestWhatIsToldOfManyDeaths(t *testing.T) {
	over := metav1.NewTime(noon.Add(-time.Minute))
	death := func(index, incident int32, first bool, cause rqv1.EndCause, ago time.Duration) rqv1.RunDeath {
		return rqv1.RunDeath{Pod: types.UID(fmt.Sprint(index)), Index: index, Incident: incident, First: first, Cause: cause,
			At: metav1.NewTime(noon.Add(-ago))}
	}
	all := []rqv1.RunDeath{
		death(0, 5, false, rqv1.CauseProgram, time.Minute),
		death(1, 4, true, rqv1.CauseProgram, 2*time.Hour),
		death(2, 5, true, rqv1.CauseProgram, time.Minute),
		death(3, 3, true, rqv1.CauseProgram, 3*time.Hour),
		death(4, 0, false, rqv1.CauseNode, time.Minute),
		death(5, 0, false, rqv1.CauseNode, 2*time.Hour),
		death(6, 4, false, rqv1.CauseProgram, time.Second),
	}
	for name, c := range map[string]struct {
		last *rqv1.RunRestartsStatus
		want []int32
	}{
		"while ranks are started again": {&rqv1.RunRestartsStatus{Incidents: 5, Counted: 2},
			[]int32{2, 1, 0, 4, 3, 5, 6}},
		"once all are ready": {&rqv1.RunRestartsStatus{Incidents: 5, Counted: 2, Ready: &over},
			[]int32{2, 1, 4, 3, 5, 6, 0}},
		"after long quiet": {&rqv1.RunRestartsStatus{Incidents: 5, Counted: 1, Ready: &over},
			[]int32{2, 4, 1, 3, 5, 6, 0}},
		"of a Run without restarts": {nil, []int32{4, 2, 1, 3, 5, 6, 0}},
	} {
		var got []int32
		for _, d := range slices.SortedStableFunc(slices.Values(all), moreTelling(all, c.last, noon)) {
			got = append(got, d.Index)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: ranks (-want +got):\n%s", name, diff)
		}
	}
}
