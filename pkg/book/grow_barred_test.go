package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that has room and money to grow, and that another scheduling rule keeps from it, says so (R43), and no longer
// once the rule lets it.
func TestGrowthThatARuleBarsIsTold(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("full", "org:b", 1, 2, 4, 0, pinnedTo("d0-n01"))
		s.work()
		s.submitWithSpares("run0", "org:a", 1, 2, 4, 0, ungrouped, elastic(1, 1), upTo(2),
			spreadOver(corev1.LabelHostname, 1))
		s.passes(time.Minute)
		const says = "bound 4 GPUs; other scheduling rules turn down the nodes on which it could grow to 16"
		if got := s.Runs["run0"].Status; got.Message != says || got.Width.Lacks != rqv1.LacksNodes {
			s.t.Fatalf("it says %q and lacks %q, want %q", got.Message, got.Width.Lacks, says)
		}
		s.finish("full")
		s.passes(40 * time.Minute)
		if got := s.Runs["run0"].Status; got.Message != "grew to 16 GPUs" || got.Width.Lacks != "" {
			s.t.Fatalf("it says %q and lacks %q, although there is another node now", got.Message, got.Width.Lacks)
		}
	})
}
