package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// A process that begins may be told of a Run and its Reservation before any node: what size the Run's pods are to have
// is not known then.
func TestAReservationIsReadBeforeTheNodes(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, group := book.New(args), int32(8)
	reservation := &rqv1.Reservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run0-r0", UID: "run0-r0",
		Labels: map[string]string{rqv1.LabelRunUID: "run0"}},
		Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "run0"},
			EarliestStart:   metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
			PayingEnvelopes: []rqv1.PayingEnvelope{{Budget: "a", Envelope: "e", GPUs: 16}}},
		Status: rqv1.ReservationStatus{State: rqv1.ReservationPending}}
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run0", UID: "run0", Generation: 1},
		Spec: rqv1.RunSpec{Owner: "org:a", Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: 16},
			Locality: &rqv1.RunLocality{GroupGPUs: &group}},
		Status: rqv1.RunStatus{Phase: rqv1.RunPending}}
	b.SetRun(run)
	b.SetReservation(reservation)
	if r := b.Refusal(run.UID); r == nil || r.Reason != plan.UnknownGPUType {
		t.Errorf("it is refused with %+v", r)
	}
}
