package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// lends has run0 grow from its total of 8 GPUs to 24 on a fleet of 24, beside nobody.
func lends(s *storm) {
	s.addNode("n0", "d0")
	s.addNode("n1", "d0")
	s.addNode("n2", "d0")
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, ungrouped, elastic(1, 1), upTo(2))
	for range 5 {
		s.work()
		s.during(time.Minute)
	}
	if width := s.Runs["run0"].Status.Width; width == nil || width.Granted != 24 {
		s.t.Fatalf("run0 does not grow: %+v\n%s", width, s.story())
	}
}

// passes lets so much time go by, in which all is done that there is to do.
func (s *storm) passes(d time.Duration) {
	for range 3 {
		s.work()
		s.Book.Due(s.Now)
		s.Act()
		s.work()
		s.during(d / 3)
	}
	s.work()
}

// What a Run has grown into beyond its total is given back at once, by the step, to whoever starts: with notice,
// without a date and a draw, whether or not cuts are paused. It is no cut: it earns no shield.
func TestWhatIsOnLoanIsGivenBackAtOnce(t *testing.T) {
	for name, paused := range map[string]bool{"as usual": false, "while cuts are paused": true} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				lends(s)
				if paused {
					s.Book.SetBrake(brake.State{Paused: true, Word: brake.Word{By: "ops"}})
				}
				s.submit("run1", "org:b", 1, 1, 8)
				s.passes(2 * noticePeriod)
				s.running("run1", "although run0 has grown by more than that")
				if width := s.Runs["run0"].Status.Width; width.Granted != 16 {
					s.t.Errorf("run0 is left %d GPUs, want 16", width.Granted)
				}
				r := s.Reservations["run1-r0"]
				if r == nil || r.Status.State != rqv1.ReservationReleased || len(r.Status.Lottery.Draws) > 0 {
					s.t.Fatalf("the Reservation: %+v", r)
				}
				width := int32(16)
				want := []rqv1.Cut{{Run: rqv1.NamespacedName{Namespace: "ns", Name: "run0"}, UID: s.Runs["run0"].UID,
					Action: rqv1.CutReturn, GPUs: 8, Width: &width}}
				if diff := cmp.Diff(want, r.Status.Cuts); diff != "" {
					s.t.Errorf("cuts (-want +got):\n%s", diff)
				}
				if n := s.ledger("run0")[string(rqv1.ClosedShrink)]; n != 1 {
					s.t.Errorf("%d Leases of run0 are closed by Shrink: %v", n, s.ledger("run0"))
				}
			})
		})
	}
}

// What is a Run's own is not given back: a Run that needs more than what is on loan has a date.
func TestNobodyGivesBackItsOwn(t *testing.T) {
	tellStorm(t, func(s *storm) {
		lends(s)
		s.submit("run1", "org:b", 3, 1, 8)
		s.passes(2 * noticePeriod)
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p == nil || p.Returns() || !p.At.After(s.Now) {
			s.t.Errorf("run1 is promised %+v", p)
		}
		if width := s.Runs["run0"].Status.Width; width.Granted != 24 {
			s.t.Errorf("run0 is left %d GPUs, want 24", width.Granted)
		}
	})
}

// Two Runs that come one upon the other get a step each, and the lender does not grow into them again.
func TestLoansAreGivenBackToSeveral(t *testing.T) {
	tellStorm(t, func(s *storm) {
		lends(s)
		s.submit("run1", "org:b", 1, 1, 8)
		s.submit("run2", "org:b", 1, 1, 8)
		s.passes(4 * noticePeriod)
		s.running("run1", "although run0 has grown by more than that")
		s.running("run2", "although run0 has grown by more than that")
		s.passes(2 * time.Minute)
		if width := s.Runs["run0"].Status.Width; width.Granted != 8 || width.Growing != 0 {
			s.t.Errorf("run0 is %+v wide, want 8", width)
		}
	})
}

// A Run that starts by what was on loan has cut nobody: it is not shielded for it.
func TestALoanEarnsNoShield(t *testing.T) {
	tellStorm(t, func(s *storm) {
		lends(s)
		s.submitWithSpares("run1", "org:b", 1, 1, 8, 0, func(r *rqv1.RunSpec) {
			r.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: 2 * reservationLead}}
		})
		s.passes(2 * noticePeriod)
		s.running("run1", "although run0 has grown by more than that")
		s.submit("run2", "org:b", 3, 1, 8)
		since := s.Now
		s.passes(time.Second)
		if p := s.Book.Prospect(s.Runs["run2"].UID).Promise; p == nil || p.At.Sub(since) > reservationLead+time.Minute {
			s.t.Errorf("run2 is promised %+v at %s", p, since)
		}
	})
}

// A process that ends in the middle of a return goes on with it, and what older Runs are told stays.
func TestAReturnSurvivesARestart(t *testing.T) {
	for rounds := range 6 {
		tellStorm(t, func(s *storm) {
			lends(s)
			s.submit("run1", "org:b", 1, 1, 8)
			s.submit("run2", "org:b", 1, 1, 8)
			for range rounds {
				s.work()
				s.Book.Due(s.Now)
				s.Act()
				s.reconcile("run1")
			}
			s.restart()
			s.passes(4 * noticePeriod)
			s.passes(2 * time.Minute)
			s.running("run1", "although run0 has grown by more than that")
			s.running("run2", "although run0 has grown by more than that")
			if width := s.Runs["run0"].Status.Width; width.Granted != 8 {
				s.t.Errorf("%d rounds: run0 is %+v wide, want 8", rounds, width)
			}
		})
	}
}

// stands asserts that nobody is planned again and again at one instant.
func (s *storm) stands() {
	for range 20 {
		next, ok := s.Book.NextDue()
		if !ok || next.After(s.Now) {
			return
		}
		s.work()
		s.Book.Due(s.Now)
		s.Act()
		s.work()
	}
	s.t.Errorf("there is something to be done at %s all the time:\n%s", s.Now, s.story())
}

// What an older Run is promised whose date stands still is not given back to a younger one, which waits quietly.
func TestAYoungerRunWaitsBehindADateThatStandsStill(t *testing.T) {
	for name, hold := range map[string]func(s *storm){
		"cuts are paused": func(s *storm) { s.Book.SetBrake(brake.State{Paused: true, Word: brake.Word{By: "ops"}}) },
		"no cuts are allowed": func(s *storm) {
			none := int32(0)
			s.limit = &none
			s.Book.LimitCuts(none)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				lends(s)
				hold(s)
				s.submit("run1", "org:b", 3, 1, 8)
				s.passes(reservationLead + time.Minute)
				s.submit("run2", "org:b", 1, 1, 8)
				for range 3 {
					s.passes(reservationLead + time.Minute)
					s.stands()
				}
				s.waits("run2", "an older Run's date has come")
				s.DeleteRun("run1")
				for range 3 {
					s.passes(reservationLead)
				}
				s.running("run2", "the older Run has gone")
			})
		})
	}
}

// A Run that starts by what is on loan is told so before all dates: once its Reservation is committed to, others give
// back.
func TestAReturnIsNotInTheLineOfDates(t *testing.T) {
	tellStorm(t, func(s *storm) {
		lends(s)
		s.submit("run1", "org:b", 1, 1, 8)
		for range 3 {
			for s.Delivers() {
				s.Deliver()
			}
			s.reconcile("run1")
		}
		s.Act()
		s.Book.Controllers().Take()
		for _, uid := range s.SortedPods() {
			s.cycle(uid)
		}
		run1 := types.NamespacedName{Namespace: "ns", Name: "run1"}
		for _, what := range []string{"it is promised", "it has a Reservation"} {
			if got := s.Book.Controllers().Take().Work[run1]; got != lane.Cut {
				s.t.Errorf("%s: the work is %d, want %d", what, got, lane.Cut)
			}
			s.reconcile("run1")
		}
	})
}

// Who has given back what it had on loan does not grow again at once when the room is free: short Runs that come one
// after the other would have it grow and shrink for each of them.
func TestWhoHasGivenBackRestsBeforeItGrows(t *testing.T) {
	tellStorm(t, func(s *storm) {
		lends(s)
		s.submit("run1", "org:b", 1, 1, 8)
		s.passes(2 * noticePeriod)
		s.running("run1", "run0 has given back")
		s.DeleteRun("run1")
		s.passes(6 * time.Second)
		s.granted("run0", 16)
		s.passes(time.Minute)
		s.passes(time.Minute)
		s.granted("run0", 24)
	})
}

// Somebody who will be given back what is on loan tomorrow keeps nobody from growing today.
func TestAReturnThatIsFarOffStopsNoGrowth(t *testing.T) {
	tellStorm(t, func(s *storm) {
		lends(s)
		b, opens := s.Budgets["b"].DeepCopy(), metav1.NewTime(s.Now.Add(24*time.Hour))
		b.Spec.Envelopes[0].Start, b.Generation = &opens, b.Generation+1000
		s.SetBudget(b)
		s.submit("run1", "org:b", 1, 2, 8)
		s.passes(time.Minute)
		if r := s.Reservations["run1-r0"]; r == nil || r.Spec.EarliestStart.Time.Before(opens.Time) ||
			len(r.Status.ConflictSet) == 0 || r.Status.ConflictSet[0].Action != rqv1.CutReturn {
			s.t.Fatalf("run1 is to get back tomorrow what is on loan: %+v", r)
		}
		run := s.Runs["run0"].DeepCopy()
		run.Spec.Malleable.MaxTotalGPUs, run.Generation = 32, run.Generation+1
		s.SetRun(run)
		s.addNode("n3", "d0")
		for range 3 {
			s.passes(time.Minute)
		}
		s.granted("run0", 32)
	})
}
