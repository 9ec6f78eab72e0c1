package integration

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/story"
)

// racers is how many Runs are created at once, each of racerGPUs.
var racers = full(200, 50)

const (
	racerGPUs = 2
	// prize is what they race for: an odd number, of which one GPU stays.
	prize = 2*racerWinners + 1
	// racerWinners is how many of them fit.
	racerWinners = 25
)

// TestRaceForMoney has many Runs of several owners created at once that borrow from a lender who lends less than they
// ask for, of which there is room for all: exactly as many start as fit, and never one GPU over; the others wait, and
// start when some of the first are deleted.
func TestRaceForMoney(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("d", 4, 128)
	s.fund("lender", s.envelope("all", 100, s.lends(prize, "poor:*")))
	s.race(func(i int) *rqv1.Run {
		return s.run(fmt.Sprintf("racer-%d", i), racerGPUs, s.by(fmt.Sprintf("poor:team-%d", i%4)), inPods(racerGPUs),
			s.from(0, "lender"))
	})
	const limit = "lending.maxConcurrency: 1 of 51 GPUs left"
	winners := s.winners(limit, racers)
	for _, winner := range winners[:10] {
		s.removeRun(winner)
	}
	s.winners(limit, racers-10)
	s.settled()
	if err := s.neverOver(prize); err != nil {
		t.Error(err)
	}
}

// race creates Runs all at once.
func (s *site) race(run func(i int) *rqv1.Run) {
	s.t.Helper()
	var group errgroup.Group
	for i := range racers {
		group.Go(func() error { return s.api.Create(s.t.Context(), run(i)) })
	}
	if err := group.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// winners waits until exactly as many Runs of so many run as fit, and the others wait because of a limit. It returns
// those that run.
func (s *site) winners(limit string, of int) []string {
	s.t.Helper()
	var running []string
	eventually(s.t, "the winners", func() error {
		var runs rqv1.RunList
		if err := s.api.List(s.t.Context(), &runs, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		var waiting int
		var other *rqv1.Run
		running, waiting, other = story.Racing(pointers(runs.Items), limit)
		if len(running) > racerWinners {
			s.t.Fatalf("%d Runs run, and %d can be paid for", len(running), racerWinners)
		}
		if len(running) < racerWinners || waiting != of-racerWinners {
			return fmt.Errorf("%d run, %d wait for %q; another: %v", len(running), waiting, limit, other)
		}
		return nil
	})
	slices.Sort(running)
	return running
}

// neverOver replays the site's Leases and is an error if at any instant they held more than so many GPUs.
func (s *site) neverOver(most int32) error {
	w, err := s.look(s.t.Context())
	if err != nil {
		return err
	}
	return story.NeverOver(pointers(w.leases), most)
}
