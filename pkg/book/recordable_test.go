package book_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// fourInTheWay has four Runs take two nodes, and another wait that needs both.
func (s *storm) fourInTheWay() *rqv1.Run {
	s.addNode("n0", "d0")
	s.addNode("n1", "d0")
	s.setBudget("a", "org:a", 16)
	s.setBudget("b", "org:b", 16)
	for i := range 4 {
		s.submit(fmt.Sprintf("small%d", i), "org:a", 1, 1, 4)
	}
	s.work()
	s.during(time.Minute)
	s.submit("big", "org:b", 1, 2, 8)
	s.work()
	return s.Runs["big"]
}

// A book that reads what was promised learns of all who are in the way, although the Reservation lists a part of them.
func TestAnAbridgedConflictSetIsCompletedWhenItIsRead(t *testing.T) {
	tellStorm(t, func(s *storm) {
		big := s.fourInTheWay()
		whole := s.Book.Prospect(big.UID).Promise.Conflicts
		if len(whole) != 4 {
			s.t.Fatalf("in the way are %+v", whole)
		}
		for listed := range 5 {
			r := s.Reservations["big-r0"].DeepCopy()
			r.Status.ConflictSet, r.Status.Conflicts = resolver.Likeliest(whole, listed), resolver.TotalOf(whole)
			b := s.Rebuilt(s.shuffle)
			b.SetReservation(r)
			b.TakeOver(s.Now)
			if diff := cmp.Diff(whole, b.Prospect(big.UID).Promise.Conflicts); diff != "" {
				s.t.Fatalf("with %d listed (-want +got):\n%s", listed, diff)
			}
		}
	})
}

// Nobody is cut while the record of the draw would be larger than a Reservation, since nobody could check it. The Run's
// turn comes again a lead later.
func TestNobodyIsCutByADrawThatCannotBeRecorded(t *testing.T) {
	tellStorm(t, func(s *storm) {
		big := s.fourInTheWay()
		s.Book.HoldRecords(1000)
		s.due()
		s.work()
		s.work() // what has been refused is written
		for i := range 4 {
			s.running(fmt.Sprintf("small%d", i), "although it was cut by a draw that is not recorded")
		}
		if p := s.Book.Prospect(big.UID); !strings.Contains(p.Brake, "have 4 entries") || p.Activation != nil {
			s.t.Fatalf("it is held back by %q, with the activation %+v", p.Brake, p.Activation)
		}
		if r := s.Reservations["big-r0"]; r.Status.State != rqv1.ReservationPending ||
			!strings.Contains(r.Status.Reason, "a Reservation can hold 1000") {
			s.t.Fatalf("its Reservation is %s: %s", r.Status.State, r.Status.Reason)
		}
		s.Book.HoldRecords(10000)
		s.due()
		s.work()
		if r := s.Reservations["big-r0"]; len(r.Status.Cuts) != 4 {
			s.t.Fatalf("its Reservation is %s: %s", r.Status.State, r.Status.Reason)
		}
		s.checkRecords()
	})
}

// Risks are in the order of their dates as people see them, then the likeliest first, then by name.
func TestTheOrderOfRisks(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	risk := func(name string, at time.Duration, probability string) rqv1.RunRisk {
		return rqv1.RunRisk{Reservation: name, At: metav1.NewTime(noon.Add(at)), Probability: probability}
	}
	want := []rqv1.RunRisk{
		risk("z", 0, "0.0001"),
		risk("y", time.Second+2*time.Millisecond, "1"),
		risk("d", time.Second, "0.5"),
		risk("a", time.Second+time.Millisecond, "0.25"),
		risk("b", time.Second, "0.25"),
		risk("c", 2*time.Second, "0.75"),
	}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, book.CompareRisks)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
