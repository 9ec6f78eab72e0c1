package book_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// BenchmarkSecond is what is done every second, or every few, beside 15,000 Runs that wait for 5,000 nodes on which
// 2,000 others run: each pass holds the book's lock. Promises apart, it is to cost less than 5 ms in all.
func BenchmarkSecond(b *testing.B) {
	f := newFleetOf(b)
	f.fill(func(int, []*corev1.Pod) {})
	for i := range 15000 {
		pods := f.run(2000+i, 4, nil)
		if i < 200 {
			f.refuse(pods)
		}
	}
	at := metav1.NewMicroTime(f.now)
	cutter := &rqv1.Reservation{
		Status: rqv1.ReservationStatus{ActivatedAt: &at, Cuts: []rqv1.Cut{{UID: "uid-run0001", Action: rqv1.CutLottery}}}}
	for name, pass := range map[string]func(){
		"onecut":  func() { f.book.Awaited(cutter) },
		"lapse":   func() { f.book.Lapse(f.now) },
		"goRound": func() { f.book.GoRound(f.now) },
		"grow":    func() { f.book.GrowRuns(f.now) },
		"fill":    func() { f.book.Fill(f.now) },
		"round":   func() { f.book.Advance(f.now); f.book.Next(f.now) },
		"cuts":    func() { f.book.CutsWithinHour(f.now) },
		"refresh": func() { f.book.RefreshPromises(f.now, 0) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pass()
			}
		})
	}
}

// BenchmarkRound is a round of the timer beside Runs that have ended, of which a week's are kept (R39): it is to cost
// the same beside many.
func BenchmarkRound(b *testing.B) {
	for _, ended := range []int{100, 100000} {
		f := newFleetOf(b)
		for i := range ended {
			name := fmt.Sprintf("ended%06d", i)
			f.book.SetRun(&rqv1.Run{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Generation: 1},
				Spec:       rqv1.RunSpec{Owner: "org:t1", Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: 8}},
				Status:     rqv1.RunStatus{Phase: rqv1.RunCompleted},
			})
		}
		f.book.Advance(f.now)
		b.Run(fmt.Sprintf("ended=%d", ended), func(b *testing.B) {
			for b.Loop() {
				f.book.Advance(f.now)
				f.book.Next(f.now)
			}
		})
	}
}
