package integration

import (
	"fmt"
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestTwoRunsThatExceedTheRoom submits two Runs of which either fits and both do not: one starts whole, the other waits
// whole and holds nothing, and it starts when the first is deleted.
func TestTwoRunsThatExceedTheRoom(t *testing.T) {
	t.Parallel()
	orders := map[string]func(s *site, a, b *rqv1.Run){
		"small first": func(s *site, a, b *rqv1.Run) { s.create(a); s.create(b) },
		"large first": func(s *site, a, b *rqv1.Run) { s.create(b); s.create(a) },
		"at once":     (*site).createAtOnce,
	}
	for order, submit := range orders {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 2, 2, 32)
			for repetition := range 7 {
				small, large := fmt.Sprintf("small-%d", repetition), fmt.Sprintf("large-%d", repetition)
				submit(s, s.run(small, 16, inPods(2)), s.run(large, 24, inPods(4)))
				winner, loser := s.oneOf(small, large)
				if err := s.holdsNothing(loser); err != nil {
					t.Error(err)
				}
				s.settled()
				s.removeRun(winner)
				s.await(loser, rqv1.RunRunning, "bound")
				s.settled()
				s.removeRun(loser)
				s.awaitGone(winner, loser)
			}
		})
	}
}

// createAtOnce creates Runs from as many goroutines.
func (s *site) createAtOnce(a, b *rqv1.Run) {
	s.t.Helper()
	done := make(chan error)
	for _, run := range []*rqv1.Run{a, b} {
		go func() { done <- s.api.Create(s.t.Context(), run) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			s.t.Fatal(err)
		}
	}
}

// oneOf waits until one of two Runs runs and the other is refused for want of GPUs, and returns them in this order.
func (s *site) oneOf(a, b string) (winner, loser string) {
	s.t.Helper()
	eventually(s.t, "one Run is to start and one to wait", func() error {
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			first, err := s.get(pair[0])
			if err != nil {
				return err
			}
			second, err := s.get(pair[1])
			if err != nil {
				return err
			}
			if is(first, rqv1.RunRunning, "bound") == nil && is(second, rqv1.RunPending, "short by") == nil {
				winner, loser = pair[0], pair[1]
				return nil
			}
			if pair[0] == b {
				return fmt.Errorf("%v, %v", is(first, "none", ""), is(second, "none", ""))
			}
		}
		return nil
	})
	return winner, loser
}

// awaitGone waits until Runs and their pods are gone and their Leases closed.
func (s *site) awaitGone(runs ...string) {
	s.t.Helper()
	for _, run := range runs {
		eventually(s.t, "Run "+run+" is to be gone", func() error {
			if _, err := s.get(run); err == nil {
				return fmt.Errorf("it is there")
			}
			if pods := s.podsOf(run); len(pods) > 0 {
				return fmt.Errorf("%d pods are left", len(pods))
			}
			for _, lease := range s.leasesOf(run) {
				if !lease.Status.Closed {
					return fmt.Errorf("Lease %s is open", lease.Name)
				}
			}
			return nil
		})
	}
}
