package book_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
)

var paused = brake.State{Paused: true, Word: brake.Word{By: "ada"}}

// full has run0 hold the only node, and run1, of another owner, wait for it.
func (s *storm) full() {
	s.addNode("n0", "d0")
	s.setBudget("a", "org:a", 8)
	s.setBudget("b", "org:b", 64)
	s.submit("run0", "org:a", 1, 1, 8)
	s.work()
	s.during(time.Minute)
	s.submit("run1", "org:b", 1, 1, 8)
	s.work()
}

// calledOff is what an administrator says of a Reservation.
func calledOff(name string) brake.State {
	return brake.State{CalledOff: map[types.NamespacedName]brake.CallOff{
		{Namespace: "ns", Name: name}: {Word: brake.Word{By: "ada"}}}}
}

// While cuts are paused a date that has come stands still, and nobody is cut; after that it is acted upon at once.
func TestPausedCuts(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.full()
		date := s.Reservations["run1-r0"].Spec.EarliestStart
		s.Book.SetBrake(paused)
		s.during(reservationLead + time.Minute)
		s.work()
		for range 3 {
			s.refresh()
			s.work()
			s.during(time.Minute)
		}
		r := s.Reservations["run1-r0"]
		if _, due := s.Book.NextDue(); due || !r.Spec.EarliestStart.Equal(&date) ||
			r.Status.State != rqv1.ReservationPending {
			s.t.Fatalf("due %v, date %s, was %s: %s", due, r.Spec.EarliestStart, date, s.story())
		}
		if !strings.Contains(r.Status.Reason, "cuts are paused by ada") {
			s.t.Fatalf("the Reservation says %q", r.Status.Reason)
		}
		s.running("run0", "although cuts are paused")
		if n := s.Book.CutsWithinHour(s.Now); n != 0 {
			s.t.Fatalf("%d cuts are counted", n)
		}
		s.crashed()
		s.Book.SetBrake(paused)
		s.work()
		s.running("run0", "although cuts are paused, after a restart")

		s.Book.SetBrake(brake.State{})
		for range 3 {
			if next, ok := s.Book.NextDue(); ok && !next.After(s.Now) {
				s.Book.Due(s.Now)
			}
			s.work()
			s.during(noticePeriod)
		}
		s.work()
		s.running("run1", "although cuts have been resumed")
	})
}

// crashed starts another process in the place of this one.
func (s *storm) crashed() { s.restart() }

// An activation that is called off before its victims are told to go is Canceled, and ends nobody. Its Run gets no date
// for a lead.
func TestAnActivationIsCalledOff(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.full()
		s.Book.SetBrake(calledOff("run1-r0"))
		s.work()
		r := s.Reservations["run1-r0"]
		if r.Status.State != rqv1.ReservationCanceled || r.Status.CalledOff != "called off by ada" {
			s.t.Fatalf("the Reservation is %s: %q", r.Status.State, r.Status.CalledOff)
		}
		for range 3 {
			s.during(30 * time.Second)
			s.refresh()
			s.work()
		}
		if len(s.Reservations) != 1 {
			s.t.Fatalf("it has another date within a lead:\n%s", s.story())
		}
		if p := s.Book.Prospect(s.Runs["run1"].UID); !strings.Contains(p.Brake, "no new date before") {
			s.t.Fatalf("it says %q", p.Brake)
		}
		s.during(31 * time.Second)
		s.refresh()
		s.work()
		if again := s.Reservations["run1-r1"]; again == nil || again.Status.State != rqv1.ReservationPending {
			s.t.Fatalf("it has no date after a lead:\n%s", s.story())
		}
		s.running("run0", "although all was called off")
	})
}

// An activation that needs more cuts than cutsPerHour allows waits, and says so.
func TestCutsPerHour(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Book.LimitCuts(0)
		s.full()
		s.due()
		s.work()
		s.work() // what has been refused is written
		s.running("run0", "although nobody may be cut")
		r := s.Reservations["run1-r0"]
		if r.Status.State != rqv1.ReservationPending || !strings.Contains(r.Status.Reason, "cutsPerHour") {
			s.t.Fatalf("the Reservation is %s: %s\n%s %+v", r.Status.State, r.Status.Reason, s.story(),
				s.Book.Prospect(s.Runs["run1"].UID))
		}
		if next, due := s.Book.NextDue(); due && next.Before(s.Now.Add(time.Minute)) {
			s.t.Fatalf("it is due at once, again and again: at %s", next)
		}
	})
}

// Of two activations that cut a Run each, cutsPerHour 1 has the second wait until the first was an hour ago, also in
// another process.
func TestCutsPerHourAreCountedFromRecords(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Book.LimitCuts(1)
		s.full()
		s.due()
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.work()
		s.running("run1", "although one cut an hour is allowed")
		first := s.Reservations["run1-r0"].Status.ActivatedAt.Time
		if n := s.Book.CutsWithinHour(s.Now); n != 1 {
			s.t.Fatalf("%d cuts are counted, want 1", n)
		}
		s.crashed()
		s.Book.LimitCuts(1)
		s.setBudget("a", "org:a", 8)
		s.during(10 * time.Minute)
		s.submit("run2", "org:a", 1, 1, 8)
		s.work()
		s.due()
		s.work()
		s.work()
		s.running("run1", "although a second cut within an hour is not allowed")
		next, due := s.Book.NextDue()
		if want := first.Add(time.Hour); !due || !next.Equal(want) {
			s.t.Fatalf("due %v at %s, want %s:\n%s", due, next, want, s.story())
		}
		s.due()
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.work()
		s.running("run2", "although an hour has passed")
	})
}
