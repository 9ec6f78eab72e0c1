package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkOwed has a Run of 8 GPUs be planned beside so many that wait and to whom its payer owes what they are to be
// paid: of 1,000, that is to cost a fraction of a millisecond more than of none.
func BenchmarkOwed(b *testing.B) {
	for _, owed := range []int{0, 64, 1000} {
		f := newFleetOf(b)
		f.fill(func(int, []*corev1.Pod) {})
		for i := range owed {
			run := f.run(5000+i*50, 4, nil)
			f.refuse(run)
			f.book.Owe(types.UID(fmt.Sprintf("uid-run%04d", 5000+i*50)), f.now.Add(time.Hour+time.Duration(i)*time.Second))
		}
		f.now = f.now.Add(time.Second)
		young := f.run(70000, 1, nil)
		b.Run(fmt.Sprintf("owed=%d", owed), func(b *testing.B) {
			for b.Loop() {
				f.book.Place(young[0].UID, f.now)
			}
		})
	}
}

// BenchmarkWakeBesideDates has a Budget come to have more where 900 Runs of as many widths wait for money that is kept
// for others who have dates: that is to hold the book for less than 20 ms.
func BenchmarkWakeBesideDates(b *testing.B) {
	for _, owed := range []int{0, 100} {
		f := newFleetOf(b)
		f.leads = true
		most := f.budgetOf(0)
		most.Spec.Envelopes[0].Concurrency, most.Generation = int32(8*(10*owed+1400)), 2
		f.book.Budgets.SetBudget(most)
		for i := range owed {
			f.run(i*50, 10, nil)
			f.book.Owe(types.UID(fmt.Sprintf("uid-run%04d", i*50)), f.now.Add(time.Hour+time.Duration(i)*time.Second))
		}
		for i := range 900 {
			leader := f.run(50*(owed+i), 1500+i, nil)[0]
			if _, refusal := f.book.Place(leader.UID, f.now); refusal == nil || !refusal.LacksMoney() {
				b.Fatalf("a Run is refused with %+v", refusal)
			}
		}
		b.Run(fmt.Sprintf("owed=%d", owed), func(b *testing.B) {
			for b.Loop() {
				f.book.WakeBudget("b0")
			}
		})
	}
}
