package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// BenchmarkUsurpers finds who has taken what a Run was promised, among 5,000 Runs, which happens under the book's lock
// each time that a date is lost.
func BenchmarkUsurpers(b *testing.B) {
	f := newFleetOf(b)
	for i := range 5000 {
		f.run(i, 1, []int{i})
	}
	pods := f.run(-50, 256, nil)
	run := pods[0].Labels[rqv1.LabelRun]
	f.refuse(pods)
	f.book.SetReservation(&rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: run + "-r0", UID: "r0",
			CreationTimestamp: metav1.NewTime(f.now.Add(-2 * time.Hour)),
			Labels:            map[string]string{rqv1.LabelRunUID: "uid-" + run}},
		Status: rqv1.ReservationStatus{State: rqv1.ReservationPending}})
	b.ReportAllocs()
	for b.Loop() {
		if f.book.Usurpers(types.UID("uid-"+run)) == "" {
			b.Fatal("nobody has taken anything")
		}
	}
}
