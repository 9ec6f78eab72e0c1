package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// starting has two Runs wait behind one that has its place and has not started, longer than others may be cut for them.
func (s *storm) starting() {
	s.addNode("n0", "d0")
	s.setBudget("a", "org:a", 64)
	s.submit("run0", "org:a", 1, 1, 8)
	s.work()
	for _, name := range []string{"run1", "run2", "run3"} {
		s.submit(name, "org:a", 1, 1, 8)
	}
	s.during(time.Second)
	s.work()
	s.during(2 * reservationLead)
	s.finish("run0")
	s.reconcile("run0")
	s.Act()
	s.cycle(s.pod("run1-0"))
	if s.Book.Assigned(s.pod("run1-0")) == "" {
		s.t.Fatalf("run1 has no place:\n%s", s.story())
	}
}

// A Run that is starting is in the way of a promise, and does not undo it. It is cut once it has started, and not
// before.
func TestARunThatIsStartingDoesNotCancelReservations(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.starting()
		s.refresh()
		for _, name := range []string{"run2", "run3"} {
			s.place(name + "-0")
			s.reconcile(name)
			if r := s.Reservations[name+"-r0"]; r == nil || r.Status.State != rqv1.ReservationPending {
				s.t.Fatalf("%s's Reservation is not kept:\n%s", name, s.story())
			}
		}
		p := s.Book.Prospect(s.Runs["run2"].UID)
		if p.Activation != nil || p.Promise == nil || !p.Promise.At.After(s.Now) || len(p.Promise.Conflicts) != 1 ||
			p.Promise.Conflicts[0].Run.Name != "run1" {
			s.t.Fatalf("run2 is promised %+v and decided on: %+v", p.Promise, p.Activation)
		}
		s.work() // run1 starts
		s.during(10 * time.Second)
		s.work()
		if len(s.Book.CutsOf(s.Runs["run1"].UID)) != 1 {
			s.t.Fatalf("run1 is not cut for run2, whose turn has come:\n%s", s.story())
		}
	})
}

// The dates of Runs that wait behind one that is starting do not chase each other: each has an instant at which what
// starts may be cut, and needs not look for one after the other's turn.
func TestDatesBehindARunThatIsStartingComeToRest(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.starting()
		var dates [2][]time.Time
		for round := range 8 {
			for _, name := range []string{"run3", "run2"} {
				s.Book.Turn(s.pod(name+"-0"), s.Now)
				s.judge()
			}
			dates[round%2] = s.dates()
		}
		if diff := cmp.Diff(dates[0], dates[1]); diff != "" {
			s.t.Fatalf("dates change while nothing happens:\n%s\n%s", diff, s.story())
		}
	})
}

// Two Runs have others cut for them, and the scheduler dies when all of those have left. The first takes no room that
// the second needs.
func TestActivationsDoNotTakeEachOthersRoomAfterACrash(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		s.work()
		s.during(time.Second)
		s.submitWithSpares("run1", "org:a", 1, 3, 2, 1, ungrouped)
		s.submit("run2", "org:a", 1, 1, 8)
		s.work()
		s.due()
		s.work()
		for _, name := range []string{"run1-r0", "run2-r0"} {
			if r := s.Reservations[name]; r.Status.State != rqv1.ReservationActivating || len(r.Status.Cuts) != 1 {
				s.t.Fatalf("%s is %s and cuts %v", name, r.Status.State, r.Status.Cuts)
			}
		}
		s.during(noticePeriod)
		s.reconcile("run0")
		s.restart()
		s.work()
		for _, name := range []string{"run1-r0", "run2-r0"} {
			if !s.Reservations[name].Ended() || s.Reservations[name].Status.State != rqv1.ReservationReleased {
				s.t.Fatalf("%s is not released:\n%s", name, s.story())
			}
		}
	})
}
