package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// Operators say who may be drawn: all Runs, none, or those alone that hold GPUs which are not paid by envelopes of
// their own owner within what these allow (R20).
func TestWhoMayBeDrawnIsPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		owner  rqv1.Owner
		budget int // after the Run has started
		drawn  bool
	}{
		"all":                       {config.LotteryAll, "org:a", 8, true},
		"none":                      {config.LotteryNone, "org:a:team", 4, false},
		"paid by its own owner":     {config.LotteryBorrowed, "org:a", 8, false},
		"paid by another":           {config.LotteryBorrowed, "org:a:team", 8, true},
		"beyond what is allowed it": {config.LotteryBorrowed, "org:a", 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.Book.DrawsBy(c.policy)
				s.addNode("n0", "d0")
				s.setBudget("a", "org:a", 8)
				s.setBudget("b", "org:b", 64)
				s.submit("run0", c.owner, 1, 1, 8)
				s.work()
				s.setBudget("a", "org:a", c.budget)
				s.during(time.Minute)
				s.submit("run1", "org:b", 1, 1, 8)
				s.work()
				p := s.Book.Prospect(s.Runs["run1"].UID).Promise
				if got := p != nil && p.Cuts; got != c.drawn {
					s.t.Fatalf("run0 is to be drawn: %v, want %v: %+v\n%s", got, c.drawn, p, s.story())
				}
				if got := len(s.Runs["run0"].Status.AtRisk) > 0; got != c.drawn {
					s.t.Fatalf("run0 is told that it is at risk: %v, want %v", got, c.drawn)
				}
				s.during(reservationLead + time.Minute)
				s.work()
				s.during(noticePeriod)
				s.work()
				if got := s.Runs["run1"].Status.Phase == rqv1.RunRunning; got != c.drawn {
					s.t.Fatalf("run1 runs: %v, want %v\n%s", got, c.drawn, s.story())
				}
			})
		})
	}
}
