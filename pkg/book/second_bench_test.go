package book_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/rank"
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
		"round":   func() { f.book.Advance(f.now); f.book.WorkOutNext(f.now, 0); f.book.Next(f.now) },
		"cuts":    func() { f.book.CutsWithinHour(f.now) },
		"refresh": func() { f.book.Sweep(f.now) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pass()
			}
		})
	}
}

// BenchmarkEnded is what is done again and again beside Runs that have ended, of which a week's are kept (R39): it is
// to cost the same beside 100,000 as beside none.
func BenchmarkEnded(b *testing.B) {
	for _, ended := range []int{0, 100000} {
		f := newFleetOf(b)
		for i := range ended {
			f.ended(i)
		}
		f.fill(func(int, []*corev1.Pod) {})
		waits := f.run(5000, 8, nil)
		f.refuse(waits)
		f.book.Advance(f.now)
		if n := f.book.GoneThrough(); n > 3000 {
			b.Fatalf("%d gangs are gone through", n)
		}
		paused := brake.State{Paused: true}
		for name, pass := range map[string]func(){
			"round":    func() { f.book.Advance(f.now); f.book.WorkOutNext(f.now, 0); f.book.Next(f.now) },
			"forecast": func() { f.refuse(waits) },
			"node":     func() { f.book.RemoveNode("nowhere") },
			"brake":    func() { f.book.SetBrake(paused); f.book.SetBrake(brake.State{}) },
			"cuts":     func() { f.book.CutsWithinHour(f.now) },
			"fill":     func() { f.book.Fill(f.now) },
		} {
			b.Run(fmt.Sprintf("%s/ended=%d", name, ended), func(b *testing.B) {
				for b.Loop() {
					pass()
				}
			})
		}
	}
}

// ended adds a Run that has ended, as a process finds it that takes over, with the pod that it had.
func (f *fleetOf) ended(i int) {
	name := fmt.Sprintf("ended%06d", i)
	run := &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: rqv1.RunSpec{Owner: "org:t1", Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: 8},
			Opportunistic: i%2 == 0},
		Status: rqv1.RunStatus{Phase: rqv1.RunCompleted},
	}
	f.book.SetRun(run)
	f.book.SetMember(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: rank.Part{}.PodName(name), UID: types.UID("pod-" + name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(run, rqv1.GroupVersion.WithKind("Run"))},
			Labels:          map[string]string{rqv1.LabelRun: name, rqv1.LabelIndex: "0", rqv1.LabelRole: "Active"}},
		Spec: corev1.PodSpec{NodeName: nodeName(i % 100)}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded},
	})
}
