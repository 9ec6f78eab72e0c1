package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// A rank that its kubelet was to end where it is, with its failed Run, and that is still there long after, is stuck
// like one that has been deleted: others are planned around it.
func TestARankThatIsToEndWhereItIsIsStuckInTime(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, patient(20))
		s.work()
		s.during(time.Second)
		node := s.on("run0-1")
		s.EndPod(s.pod("run0-0"), corev1.PodFailed)
		s.reconcile("run0")
		s.reconcile("run0")
		s.hang(s.pod("run0-1"))
		for after, want := range map[time.Duration][]string{49 * time.Second: nil, 51 * time.Second: {node}} {
			if diff := cmp.Diff(want, s.Book.StuckOn(s.Now.Add(after))); diff != "" {
				s.t.Fatalf("after %s others are planned around (-want +got):\n%s%s", after, diff, s.story())
			}
		}
	})
}
