package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that was cut may in turn have the Run cut that it was cut for, once that has had its shield: else it would be
// without a date for as long as that one runs (R17, R22).
func TestTheOneThatWasCutMayCutInTurnAfterTheShield(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(r *rqv1.RunSpec) {
			r.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}}
		})
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.due()
		s.work()
		s.during(noticePeriod)
		s.work()
		s.running("run1", "for which run0 was drawn")
		shielded := s.Now.Truncate(time.Second).Add(activationShield)
		s.during(time.Second)
		s.work()
		p := s.Book.Prospect(s.Runs["run0"].UID)
		if p.Promise == nil {
			s.t.Fatalf("run0 has no date: %v\n%s", p.Refusal, s.story())
		}
		if diff := cmp.Diff(shielded, p.Promise.At); diff != "" {
			s.t.Fatalf("when run0 may cut run1 in turn (-want +got):\n%s\n%s", diff, s.story())
		}
		s.due()
		s.work()
		if cuts := s.Book.CutsOf(s.Runs["run1"].UID); len(cuts) != 1 {
			s.t.Fatalf("run1 is cut %d times after its shield, want once\n%s", len(cuts), s.story())
		}
	})
}
