package book_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// It cannot be found out what other rules say of a place, time and again: no node is turned down and nothing is sure.
// Either another place is tried or people are told why, and nobody is told that the rank was not evicted while nobody
// could evict it (R29, R35).
func TestAPlaceThatNobodyKnowsOf(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.guardedOn("n0")
		s.addNode("n1", "d0")
		s.addNode("n2", "d0")
		s.change("n0", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		tried := map[string]bool{}
		for range 120 {
			for range 3 {
				if err := s.Reconcile("run0"); err != nil {
					s.t.Fatal(err)
				}
				for _, run := range s.Book.Inquiries().Take() {
					if check := s.Book.CheckMoves(run); check != nil {
						tried[check.Places[0].Node] = true
						known := check.Places[0].Node == "n2"
						s.Book.ConcludeMoves(check, nil, known, s.Now)
					}
				}
			}
			if s.least("run0") == 0 {
				return
			}
			c := meta.FindStatusCondition(s.Runs["run0"].Status.Conditions, rqv1.ConditionDrainWaits)
			if c != nil && c.Status == "True" && c.Reason == "NotEvicted" {
				s.t.Fatalf("tried %v; nobody could evict the rank so far, and people are told: %s", tried, c.Message)
			}
			s.Pass(time.Second)
		}
		s.t.Fatalf("tried %v, and nobody is told why the drain waits", tried)
	})
}

// Ranks that are not ready keep a drain waiting for longer than gangDeadline: nobody can evict a rank meanwhile, and it
// is not said that nobody did.
func TestNobodyCouldEvictTheRank(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.readyRun()
		s.becomes("run0-2", false)
		s.cordons(s.on("run0-0"), true)
		s.waitsFor("run0", "RanksNotReady", "rank 2 is not ready")
		for range 15 {
			s.until(5 * time.Second)
			s.waitsFor("run0", "RanksNotReady", "rank 2 is not ready")
		}
	})
}

// Nobody answers what is asked about a place to which a rank is to move: it is asked again within seconds, and another
// place is tried then.
func TestAMoveThatNobodyAnswersEnds(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.guardedOn("n0")
		s.addNode("n1", "d0")
		s.addNode("n2", "d0")
		s.change("n0", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		tried := map[string]bool{}
		for range 60 {
			if err := s.Reconcile("run0"); err != nil {
				s.t.Fatal(err)
			}
			for _, run := range s.Book.Inquiries().Take() {
				if check := s.Book.CheckMoves(run); check != nil {
					tried[check.Places[0].Node] = true
				}
			}
			s.Pass(time.Second)
			s.Book.Advance(s.Now)
		}
		if len(tried) != 2 {
			s.t.Fatalf("tried %v", tried)
		}
	})
}

// Nor is a move turned down that nobody has come to ask about yet, since others are asked about before.
func TestAMoveWaitsForItsTurnToBeAskedAbout(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.guardedOn("n0")
		s.addNode("n1", "d0")
		s.change("n0", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		for range 60 {
			if err := s.Reconcile("run0"); err != nil {
				s.t.Fatal(err)
			}
			s.Pass(time.Second)
			s.Book.Advance(s.Now)
		}
		var asked []string
		for _, run := range s.Book.Inquiries().Take() {
			if check := s.Book.CheckMoves(run); check != nil {
				asked = append(asked, check.Places[0].Node)
			}
		}
		if !slices.Equal(asked, []string{"n1"}) {
			s.t.Fatalf("asked about %v after a minute", asked)
		}
	})
}
