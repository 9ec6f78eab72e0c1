package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// TestALeaseThatCannotTellOfItsPodEndsAsItDid: where the API server has not taken until when a Lease is open for the
// containers of a pod that is gone, that closes when they have ended all the same, although its rank has begun
// elsewhere since: the pod has run.
func TestALeaseThatCannotTellOfItsPodEndsAsItDid(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lease := func(pod types.UID, start time.Time) *rqv1.Lease {
		return &rqv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(pod), Labels: map[string]string{
				rqv1.LabelPodUID: string(pod)}},
			Spec: rqv1.LeaseSpec{RunRef: rqv1.LeaseRunRef{Name: "run", Namespace: "ns", UID: "uid"},
				Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: "n0", GPUs: 8}}},
				Start: metav1.NewMicroTime(start)}}
	}
	o := Observed{Now: now, Objects: book.Objects{Name: types.NamespacedName{Namespace: "ns", Name: "run"},
		Leases: []*rqv1.Lease{lease("old", now.Add(-time.Hour)), lease("new", now.Add(-time.Minute))}},
		Look: book.Look{Nodes: map[string]book.NodeState{"n0": {Stands: true}}, Here: map[types.UID]bool{"new": true},
			Vanished: map[types.UID]book.Vanished{"old": {By: now}}}}
	got := map[string]Closing{}
	for _, c := range Decide(o).Close {
		got[c.Lease.Name] = Closing{Reason: c.Reason, Ended: c.Ended}
	}
	want := map[string]Closing{"old": {Reason: rqv1.ClosedDeleted}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Leases that close (-want +got):\n%s", diff)
	}
}

// TestALeaseOfAPodThatNeverRunsCloses, however long a finalizer keeps the pod's object.
func TestALeaseOfAPodThatNeverRunsCloses(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid",
		Finalizers: []string{"example.com/mine"}, DeletionTimestamp: &metav1.Time{Time: now},
		Labels: map[string]string{rqv1.LabelRun: "run", rqv1.LabelRunUID: "uid", rqv1.LabelSource: string(rqv1.SourcePods)}}}
	lease := &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "l", Labels: map[string]string{rqv1.LabelPodUID: "pod-uid"}},
		Spec: rqv1.LeaseSpec{RunRef: rqv1.LeaseRunRef{Name: "run", Namespace: "ns", UID: "uid"},
			Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: "n0", GPUs: 8}}},
			Start: metav1.NewMicroTime(now.Add(-time.Second))}}
	o := Observed{Now: now, Objects: book.Objects{Name: types.NamespacedName{Namespace: "ns", Name: "run"},
		Pods: []*corev1.Pod{pod}, Leases: []*rqv1.Lease{lease}},
		Look: book.Look{Nodes: map[string]book.NodeState{"n0": {Stands: true}}}}
	if closes := Decide(o).Close; len(closes) != 1 || closes[0].Reason != rqv1.ClosedDeleted {
		t.Errorf("Leases close as %+v, want one as Deleted", closes)
	}
	o.Pods[0].Spec.NodeName = "n0"
	if closes := Decide(o).Close; len(closes) > 0 {
		t.Errorf("Leases of a pod that runs close: %+v", closes)
	}
}
