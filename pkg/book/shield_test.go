package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that was drawn starts again when there is room, though nobody is cut for it. It gets as far as its next
// checkpoint, whoever waits (R22).
func TestARunThatWasDrawnIsShieldedWhenItStartsAgain(t *testing.T) {
	tellStorm(t, func(s *storm) {
		const interval = reservationLead + 2*time.Minute
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(r *rqv1.RunSpec) {
			r.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: interval}}
		})
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.due() // the first time it may be cut, for it has not been drawn
		s.work()
		s.during(noticePeriod)
		s.work()
		s.running("run1", "for which run0 was drawn")
		s.finish("run1")
		s.work()
		s.running("run0", "although there is room again")
		again := s.Now.Truncate(time.Second)
		s.submit("run2", "org:a", 1, 1, 8)
		for _, wait := range []time.Duration{0, reservationLead} {
			s.during(wait)
			s.work()
			if diff := cmp.Diff(again.Add(interval), s.Book.Prospect(s.Runs["run2"].UID).Promise.At); diff != "" {
				s.t.Fatalf("when run2 starts (-want +got):\n%s\n%s", diff, s.story())
			}
		}
		s.due()
		s.work()
		if cuts := s.Book.CutsOf(s.Runs["run0"].UID); len(cuts) != 1 {
			s.t.Fatalf("run0 is cut %d times after its interval, want once", len(cuts))
		}
	})
}
