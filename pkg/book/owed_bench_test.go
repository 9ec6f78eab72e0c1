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
