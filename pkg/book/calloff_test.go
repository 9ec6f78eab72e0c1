package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// contested has two Runs hold a node each, and run1, of another owner, wait for so many nodes. The draw is another for
// another seed.
func (s *storm) contested(nodes, seed int) {
	s.NextUID += seed
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	for _, name := range []string{"n0", "n1"} {
		s.addNode(name, "d0")
		s.submitWithSpares("on-"+name, "org:a", 1, 1, 8, 0, checkpointed)
		s.work()
	}
	s.during(time.Minute)
	s.submit("run1", "org:b", 1, nodes, 8)
	s.work()
}

// decided has run1's turn come and its cuts published, before anybody is told to go.
func (s *storm) decided(reservation string) []rqv1.Cut {
	s.Book.Due(s.Now)
	s.Act()
	for _, uid := range s.SortedPods() {
		s.cycle(uid)
	}
	for range 4 {
		s.reconcile("run1")
		for s.Delivers() {
			s.Deliver()
		}
	}
	r := s.Reservations[reservation]
	if r == nil || len(r.Status.Cuts) == 0 {
		s.t.Fatalf("%s is not decided: %+v\n%s", reservation, r, s.story())
	}
	return r.Status.Cuts
}

// An activation is called off amid its cuts: who has not been told to go stays, who has been goes, and nobody is waited
// for.
func TestAnActivationIsCalledOffAmidItsCuts(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.contested(2, 0)
		s.due()
		if cuts := s.decided("run1-r0"); len(cuts) != 2 {
			s.t.Fatalf("the cuts are %v", cuts)
		}
		s.reconcile("on-n0")
		s.Book.SetBrake(calledOff("run1-r0"))
		s.reconcile("run1")
		s.work()
		r := s.Reservations["run1-r0"]
		if r.Status.State != rqv1.ReservationCanceled || r.Status.Cause != rqv1.CanceledCalledOff ||
			r.Status.Lottery.Nonce == "" {
			s.t.Fatalf("the Reservation is %s for %q", r.Status.State, r.Status.Cause)
		}
		s.during(noticePeriod)
		s.work()
		s.running("on-n1", "although it had not been told to go")
		s.running("on-n0", "on the node that it had to leave, which is free")
		if p := s.Book.Prospect(s.Runs["run1"].UID); p.Leaving != 0 || p.Promise != nil {
			s.t.Fatalf("run1 waits for %d pods and is promised %+v", p.Leaving, p.Promise)
		}
		s.checkRecords()
		s.checkSettled()
	})
}

// Who was to be cut by an activation that was called off is not cut by the next one of the same Run, which is about
// somebody else: nobody counts on what it holds.
func TestWhoIsSparedByACallOffStaysSpared(t *testing.T) {
	others := 0
	for seed := range 6 {
		tellStorm(t, func(s *storm) {
			s.contested(1, seed)
			s.due()
			spared := s.decided("run1-r0")[0].Run.Name
			s.Book.SetBrake(calledOff("run1-r0"))
			s.reconcile("run1") // before anybody is told to go
			s.work()
			s.running(spared, "although its cut was called off")
			s.during(reservationLead)
			s.work()
			s.due()
			if next := s.decided("run1-r1"); next[0].Run.Name == spared {
				return
			}
			others++
			s.submit("run2", "org:b", 1, 1, 8)
			s.reconcile("run2")
			s.Act()
			s.cycle(s.pod("run2-0"))
			p := s.Book.Prospect(s.Runs["run2"].UID).Promise
			if p != nil && (!p.Cuts || p.At.Before(s.Now.Add(reservationLead))) {
				s.t.Fatalf("run2 is promised %+v, in the room of %s that stays", p, spared)
			}
		})
	}
	if others == 0 {
		t.Fatal("the second draw was never about somebody else")
	}
}
