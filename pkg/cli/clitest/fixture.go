// Package clitest has what the tests of the commands share: fixtures, and texts to compare with.
package clitest

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// Noon is the instant at which the tests' Runs are submitted.
var Noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// After is an instant after noon.
func After(d time.Duration) metav1.Time { return metav1.NewTime(Noon.Add(d)) }

// Ptr points to a value.
func Ptr[T any](v T) *T { return &v }

// RunOf makes a Run of an owner in groups.
func RunOf(name string, gpus, perGroup int32, status rqv1.RunStatus) rqv1.Run {
	run := rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "rai", UID: types.UID(name + "-uid"), Generation: 1,
			CreationTimestamp: After(0)},
		Spec:   rqv1.RunSpec{Owner: "org:ai:rai", Resources: rqv1.RunResources{GPUType: "H100-80GB", TotalGPUs: gpus}},
		Status: status,
	}
	if perGroup > 0 {
		run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: Ptr(perGroup)}
	}
	return run
}

// Stands is a Run that stands for the pods of a group.
func Stands(run rqv1.Run, api, kind, name string) rqv1.Run {
	run.Name = group.RunName(group.Key{Namespace: run.Namespace, API: api, Kind: kind, Name: name})
	run.Spec.Source, run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{APIGroup: api, Kind: kind, Name: name}
	return run
}

// LeaseOf makes an open GPU lease of eight GPUs from ten seconds after noon.
func LeaseOf(run *rqv1.Run, name string, group int32, node string) rqv1.Lease {
	return rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: run.Namespace, UID: types.UID(name)},
		Spec: rqv1.LeaseSpec{
			Owner:          run.Spec.Owner,
			RunRef:         rqv1.LeaseRunRef{Name: run.Name, Namespace: run.Namespace, UID: run.UID},
			GroupIndex:     group,
			Slice:          rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: node, GPUs: 8}}},
			Payer:          rqv1.LeasePayer{Budget: "rai", Owner: "org:ai:rai"},
			PaidByEnvelope: "west-h100",
			Reason:         rqv1.ReasonStart,
			Start:          metav1.NewMicroTime(Noon.Add(10 * time.Second)),
		},
	}
}

// As is the GPU lease of a pod of a role, by its index.
func As(lease rqv1.Lease, role rqv1.LeaseRole, index int) rqv1.Lease {
	lease.Spec.Slice.Role = role
	lease.Labels = map[string]string{rqv1.LabelIndex: fmt.Sprint(index)}
	return lease
}

// Since is the GPU lease as opened for a reason, a time after the first ones.
func Since(lease rqv1.Lease, later time.Duration, reason rqv1.LeaseReason) rqv1.Lease {
	lease.Spec.Start = metav1.NewMicroTime(lease.Spec.Start.Add(later))
	lease.Spec.Reason = reason
	return lease
}

// Closed is the GPU lease closed after a time of holding.
func Closed(lease rqv1.Lease, held time.Duration, reason rqv1.ClosureReason) rqv1.Lease {
	lease.Status = rqv1.LeaseStatus{
		Closed: true, Ended: Ptr(metav1.NewMicroTime(lease.Spec.Start.Add(held))), ClosureReason: reason}
	return lease
}

// Waits is the status of a Run that waits for a reason.
func Waits(reason, message string) rqv1.RunStatus {
	return rqv1.RunStatus{
		ObservedGeneration: 1, Phase: rqv1.RunPending, Message: message,
		Conditions: []metav1.Condition{
			{Type: rqv1.ConditionStarted, Status: metav1.ConditionFalse, Reason: reason, Message: message,
				LastTransitionTime: After(time.Second)},
			{Type: rqv1.ConditionFinished, Status: metav1.ConditionFalse, Reason: "Unfinished",
				LastTransitionTime: After(time.Second)},
		},
	}
}

// Poor is the status of a Run that nobody can pay for.
func Poor() rqv1.RunStatus {
	status := Waits("InsufficientBudget", "budget of org:ai:rai is short by 8 of 16 GPUs")
	status.Refusal = &rqv1.RunRefusal{Reason: "InsufficientBudget", Owner: "org:ai:rai", WantedGPUs: 16, ShortGPUs: 8,
		Envelope: "rai/west-h100",
		Changes: []rqv1.RefusalChange{{What: "raise envelopes[west-h100].concurrency of Budget rai from 64 to 72", GPUs: 16},
			{What: "raise spec.funding.maxBorrowGPUs of the Run from 8 to 12", GPUs: 12}}}
	return status
}

// Runs is the status of a Run that runs on its own money.
func Runs(gpus int32) rqv1.RunStatus {
	return rqv1.RunStatus{
		ObservedGeneration: 1, Phase: rqv1.RunRunning, Message: "bound 16 GPUs",
		Width:   &rqv1.RunWidth{Min: gpus, Max: gpus, Desired: gpus, Allocated: gpus},
		Funding: &rqv1.RunFundingStatus{OwnedGPUs: gpus},
		Conditions: []metav1.Condition{
			{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Started", Message: "bound 16 GPUs",
				LastTransitionTime: After(10 * time.Second)},
		},
	}
}

// ReservationOf is a Reservation of a Run, made a second after noon, with a date a quarter of an hour later.
func ReservationOf(run *rqv1.Run, gpus int32, conflicts ...rqv1.Conflict) rqv1.Reservation {
	return rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-r0", Namespace: run.Namespace, UID: types.UID(run.Name + "-r0-uid"),
			CreationTimestamp: After(time.Second)},
		Spec: rqv1.ReservationSpec{
			RunRef: rqv1.NamespacedName{Namespace: run.Namespace, Name: run.Name},
			IntendedSlice: &rqv1.IntendedSlice{Domain: map[string]string{"region": "us-west", "fabric.domain": "B"},
				Nodes: []string{"b1", "b2", "b3", "b4", "b5", "b6"}},
			PayingEnvelopes: []rqv1.PayingEnvelope{{Budget: "rai", Envelope: "west-h100", GPUs: 96},
				{Budget: "mm", Envelope: "pool", GPUs: 32}},
			EarliestStart: After(time.Second + 15*time.Minute),
		},
		Status: rqv1.ReservationStatus{
			State: rqv1.ReservationPending,
			Forecast: &rqv1.Forecast{DeficitGPUs: gpus, Scope: "region=us-west,fabric.domain=B",
				Confidence: rqv1.ConfidenceConservative,
				Remedies:   []string{"Drop spares in scope (32 GPUs)", "Shrink elastic runs by step size (16 GPUs)"}},
			ConflictSet: conflicts,
			Lottery:     &rqv1.Lottery{Commitment: strings.Repeat("ab", 32), Odds: "exact"},
		},
	}
}

// Conflict is an entry of a conflict set.
func Conflict(action rqv1.CutAction, owner rqv1.Owner, name string, gpus int32, probability string) rqv1.Conflict {
	return rqv1.Conflict{Run: rqv1.NamespacedName{Namespace: "mm", Name: name}, Owner: owner, Action: action, GPUs: gpus,
		Probability: probability}
}

// PromisedTo has a Run's status name its Reservation.
func PromisedTo(run *rqv1.Run, r *rqv1.Reservation) {
	run.Status.PendingReservation, run.Status.EarliestStart = r.Name, &r.Spec.EarliestStart
}

// Guarded is the open GPU leases of a Run of two groups of four pods, each with a spare.
func Guarded(run *rqv1.Run) []rqv1.Lease {
	var leases []rqv1.Lease
	for i := range 8 {
		leases = append(leases, As(LeaseOf(run, fmt.Sprint("g-", i), int32(i/4), fmt.Sprint("n", i)), rqv1.RoleActive, i))
	}
	for i := range 2 {
		leases = append(leases, As(LeaseOf(run, fmt.Sprint("g-s", i), int32(i), fmt.Sprint("s", i)), rqv1.RoleSpare, i))
	}
	return leases
}

// PodOf is the pod of a rank of a Run, which runs on a node.
func PodOf(run *rqv1.Run, index int, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", run.Name, index), Namespace: run.Namespace,
		UID: types.UID(fmt.Sprintf("%s-%d-uid", run.Name, index)), CreationTimestamp: After(0),
		Labels: map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
			rqv1.LabelIndex: fmt.Sprint(index), rqv1.LabelRole: string(rqv1.RoleActive)}}}
	pod.Spec.NodeName, pod.Spec.Containers = node, []corev1.Container{{Name: "main"}, {Name: "side"}}
	pod.Status.Phase = corev1.PodRunning
	for _, name := range []string{"main", "side"} {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
	return pod
}
