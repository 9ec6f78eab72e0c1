package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Ranks that have lost their pods together are paid for in another order than before, one of them in the place of a
// spare: no envelope keeps money for one and pays for another beside it (I3).
func TestRanksExchangeThePayersThatTheyHad(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 4)
		b := s.Budgets["a"].DeepCopy()
		b.Generation++
		b.Spec.Envelopes = append(b.Spec.Envelopes, rqv1.Envelope{Name: "f", Flavor: flavor, Concurrency: 8})
		s.SetBudget(b)
		s.submitWithSpares("run0", "org:a", 1, 2, 4, 1)
		s.work()
		s.running("run0", "although there is room")
		for _, name := range []string{"run0-0", "run0-1"} {
			s.Rejects[s.on(name)] = "Insufficient cpu"
		}
		for _, name := range []string{"run0-0", "run0-1"} {
			s.DeletePod(s.pod(name))
		}
		for range 5 {
			s.passes(time.Second)
		}
		s.running("run0", "although there are a spare and room for its ranks")
	})
}
