package picture_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// story is a Run that has moved from one node to another without a break, has four hours in all, and is followed by a
// Run that waits; the envelope that pays ends at midnight, and a node is out of service from three to four.
func story() *picture.Objects {
	hours := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	under := node("b", 8, 8)
	under.Annotations = map[string]string{rqv1.AnnotationMaintenanceStart: hours(3).Format(time.RFC3339),
		rqv1.AnnotationMaintenanceEnd: hours(4).Format(time.RFC3339)}
	train := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train"}, Spec: rqv1.RunSpec{Owner: "team",
		Runtime: &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 4 * time.Hour}}},
		Status: rqv1.RunStatus{Phase: rqv1.RunRunning, Conditions: []metav1.Condition{{Type: rqv1.ConditionStarted,
			Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(hours(-2))}}}}
	next := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "next"}, Spec: rqv1.RunSpec{Owner: "team",
		Resources: rqv1.RunResources{TotalGPUs: 16}}}
	end := metav1.NewTime(hours(12))
	return &picture.Objects{
		Nodes: []*corev1.Node{node("a", 8, 8), under},
		Runs:  []*rqv1.Run{train, next},
		Leases: []*rqv1.Lease{closed(lease("train", rqv1.RoleActive, "a", 8, hours(-2)), hours(-1)),
			lease("train", rqv1.RoleActive, "b", 8, hours(-1)),
			closed(lease("train", rqv1.RoleActive, "a", 8, hours(-9)), hours(-8))},
		Reservations: []*rqv1.Reservation{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "next-r0"},
			Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "next"},
				EarliestStart: metav1.NewTime(hours(2)), IntendedSlice: &rqv1.IntendedSlice{Nodes: []string{"a", "b"}}}}},
		Budgets: []*rqv1.Budget{{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: rqv1.BudgetSpec{Owner: "team",
			Envelopes: []rqv1.Envelope{{Name: "h100", Concurrency: 32, End: &end}, {Name: "always"}}}}},
	}
}

// TestTimeline draws the story both ways, from three hours ago to six hours ahead.
func TestTimeline(t *testing.T) {
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	to := func(n int) *time.Time { end := at(n); return &end }
	for by, want := range map[picture.Lanes][]picture.Bar{
		picture.ByDomain: {
			{Lane: "r/c/d", Kind: picture.Held, Name: "ns/train", Owner: "team", From: at(-2), GPUs: 8},
			{Lane: "r/c/d", Kind: picture.Ahead, Name: "ns/train", Owner: "team", From: noon, To: to(2), GPUs: 8},
			{Lane: "r/c/d", Kind: picture.Reserved, Name: "ns/next", Owner: "team", From: at(2), GPUs: 16},
			{Lane: "r/c/d", Kind: picture.Maintenance, Name: "b", From: at(3), To: to(4)},
		},
		picture.ByOwner: {
			{Lane: "team", Kind: picture.Window, Name: "team/h100", From: at(-3), To: to(12), GPUs: 32},
			{Lane: "team", Kind: picture.Held, Name: "ns/train", Owner: "team", From: at(-2), GPUs: 8},
			{Lane: "team", Kind: picture.Ahead, Name: "ns/train", Owner: "team", From: noon, To: to(2), GPUs: 8},
			{Lane: "team", Kind: picture.Reserved, Name: "ns/next", Owner: "team", From: at(2), GPUs: 16},
		},
	} {
		got := picture.Timeline(story(), defaults(t), by, at(-3), at(6), noon)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", by, diff)
		}
	}
}
