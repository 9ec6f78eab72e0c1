package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// racers is how many Runs race for money, each of racerGPUs.
	racers    = 50
	racerGPUs = 2
	// winners is how many of them fit, and prize what they race for: an odd number, of which one GPU stays.
	winners = 25
	prize   = 2*winners + 1
)

// crowdStories are of many Runs at once.
func crowdStories() (all []Story) {
	for name, c := range map[string]struct {
		fund func(s *Teller)
		// borrower is the owner of a racer, and lender from whom it borrows; nobody if empty.
		borrower func(i int) string
		lender   string
		limit    string
	}{
		"an-envelope": {
			fund:     func(s *Teller) { s.Fund("team", Envelope("all", prize)) },
			borrower: func(int) string { return "team" },
			limit:    "50 of 51 GPUs in use",
		},
		"an-aggregate-cap": {
			fund:     raceUnderACap,
			borrower: func(int) string { return "team" },
			limit:    "aggregateCaps[both].maxConcurrency: 1 of 51 GPUs left",
		},
		"a-lending-cap": {
			fund:     func(s *Teller) { s.Fund("lender", Envelope("all", 100, s.Lends(prize, "poor:*"))) },
			borrower: func(i int) string { return fmt.Sprintf("poor:team-%d", i%4) },
			lender:   "lender",
			limit:    "lending.maxConcurrency: 1 of 51 GPUs left",
		},
	} {
		all = append(all, Story{Name: "race-for-" + name, Play: func(s *Teller) {
			c.fund(s)
			raceForMoney(s, c.borrower, c.lender, c.limit)
		}})
	}
	return append(all,
		Story{Name: "many-who-may-be-cut", Play: manyWhoMayBeCut},
		Story{Name: "one-pod-of-each-that-waits", Play: onePodOfEach})
}

// raceUnderACap has two envelopes, each of which pays for less than the prize, and both for no more.
func raceUnderACap(s *Teller) {
	s.Fund("team", Envelope("one", 40), Envelope("two", 40))
	s.EditBudget("team", func(b *rqv1.Budget) {
		b.Spec.AggregateCaps = []rqv1.AggregateCap{{Name: "both", Flavor: s.site.Flavor, Envelopes: []string{"one", "two"},
			MaxConcurrency: ptr.To[int32](prize)}}
	})
}

// raceForMoney creates many Runs at once for the last GPUs that are paid for, of which there is room for all: exactly
// as many start as fit, and never one GPU over; the others wait, and start when some of the first are deleted.
func raceForMoney(s *Teller, borrower func(int) string, lender, limit string) {
	s.Nodes("d", 1, WithGPUs(128))
	for i := range racers {
		changes := []RunChange{s.By(borrower(i)), InPods(racerGPUs)}
		if lender != "" {
			changes = append(changes, s.From(lender))
		}
		s.Submit(fmt.Sprintf("racer-%02d", i), racerGPUs, changes...)
	}
	for _, winner := range wins(s, limit, racers)[:10] {
		s.Remove(winner)
	}
	wins(s, limit, racers-10)
	s.Sound()
	if err := NeverOver(s.World().Leases, prize); err != nil {
		s.Errorf("%v", err)
	}
}

// wins waits until exactly as many Runs of so many run as fit, and the others wait because of a limit. It returns those
// that run.
func wins(s *Teller, limit string, of int) (running []string) {
	s.Until("the winners", func() error {
		var waiting int
		var other *rqv1.Run
		running, waiting, other = Racing(s.World().Runs, limit)
		if len(running) > winners {
			s.Fatalf("%d Runs run, and %d can be paid for", len(running), winners)
		}
		if len(running) < winners || waiting != of-winners {
			return fmt.Errorf("%d run, %d wait for %q; another: %v", len(running), waiting, limit, other)
		}
		return nil
	})
	return running
}

// Racing tells which Runs run, how many wait because of a limit, and one that does neither.
func Racing(runs []*rqv1.Run, limit string) (running []string, waiting int, other *rqv1.Run) {
	for _, run := range runs {
		switch {
		case run.Status.Phase == rqv1.RunRunning:
			running = append(running, run.Name)
		case run.Status.Phase == rqv1.RunPending && strings.Contains(run.Status.Message, limit):
			waiting++
		default:
			other = run
		}
	}
	return running, waiting, other
}

// NeverOver is an error if at any instant Leases have held more than so many GPUs.
func NeverOver(leases []*rqv1.Lease, most int32) error {
	type change struct {
		at   time.Time
		gpus int32
	}
	var changes []change
	for _, l := range leases {
		changes = append(changes, change{l.Spec.Start.Time, l.GPUs()})
		if l.Status.Ended != nil {
			changes = append(changes, change{l.Status.Ended.Time, -l.GPUs()})
		}
	}
	slices.SortFunc(changes, func(x, y change) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.gpus, y.gpus)) // what ends at an instant is free at it
	})
	held := int32(0)
	for _, c := range changes {
		held += c.gpus
		if held > most {
			return fmt.Errorf("%d GPUs were held at %s, and %d could be paid for", held, c.at, most)
		}
	}
	return nil
}

// manyWhoMayBeCut has 264 Runs of one GPU be in the way of one that waits: its Reservation lists 256 of them and says
// how many there are.
func manyWhoMayBeCut(s *Teller) {
	const nodes = 33
	s.Nodes("d0", nodes)
	s.Fund("", Envelope("all", 1000))
	for i := range nodes * 8 {
		s.Submit(fmt.Sprintf("small-%03d", i), 1)
	}
	s.Until("all small Runs are to run", func() error {
		for _, run := range s.World().Runs {
			err := s.said(run, rqv1.RunRunning, []string{"bound 1 GPUs"})
			if err != nil {
				return fmt.Errorf("%s: %w", run.Name, err)
			}
		}
		return nil
	})
	s.Submit("waits", 8, InPods(1))
	var r *rqv1.Reservation
	s.Until("its Reservation is to tell of all", func() error {
		r = s.Promised("waits", rqv1.ReservationPending)
		if r.Status.Conflicts == nil {
			return fmt.Errorf("%d conflicts, and nothing is said of their total", len(r.Status.ConflictSet))
		}
		return nil
	})
	s.Same("how many conflicts are listed", rqv1.MostForecastConflicts, len(r.Status.ConflictSet))
	s.Same("of how many", rqv1.ConflictTotal{Total: nodes * 8, GPUs: nodes * 8}, *r.Status.Conflicts)
}

// onePodOfEach has many Runs of 64 pods each wait: none of them ever has more than one pod.
func onePodOfEach(s *Teller) {
	const runs = 100
	s.Nodes("d0", 8)
	s.Fund("", Envelope("all", 1000))
	s.Submit("holder", 64, InPods(8))
	s.Says("holder", rqv1.RunRunning, "bound 64 GPUs")
	for i := range runs {
		s.Submit(fmt.Sprintf("waits-%02d", i), 64, InPods(1))
	}
	s.Until("all are to be told why they wait", func() error {
		w, told := s.World(), 0
		for _, run := range w.Runs {
			if pods := len(w.PodsOf(run.Name)); run.Name != "holder" && pods > 1 {
				s.Fatalf("Run %s waits and has %d pods", run.Name, pods)
			}
			if r := run.Status.Refusal; r != nil && r.Reason == "InsufficientGPUs" {
				told++
			}
		}
		return differs(runs, told)
	})
}
