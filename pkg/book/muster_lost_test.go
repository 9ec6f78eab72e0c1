package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// A Run has its places and waits for others to leave them when somebody deletes one of its pods: it is planned anew.
func TestAPodIsDeletedWhileOthersLeave(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, patient(80))
		s.work()
		s.during(time.Minute)
		s.submit("wants", "org:b", 1, 4, 2)
		s.later(reservationLead - 10*time.Second)
		s.DeleteRun("holder")
		s.later(15 * time.Second)
		if active, _ := s.countPods("wants"); active != 4 {
			s.t.Fatalf("wants has %d pods:\n%s", active, s.story())
		}
		s.DeletePod(s.pod("wants-2"))
		s.disturb()
		s.later(5 * time.Minute)
		s.running("wants", "although the holder is gone")
	})
}

// Somebody deletes a pod of a Run for which others are to be cut before all of its pods have been made. The rest of
// them would not be taken: nobody is cut.
func TestNobodyIsCutForARunThatLosesAPod(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.turnComes()
		s.Book.Due(s.Now)
		s.Act()
		s.cycle(s.pod("wants-0"))
		s.Faults.Add(sim.Fault{Of: sim.Creations, After: 1, Do: sim.Late})
		s.reconcile("wants")
		if active, _ := s.countPods("wants"); active != 3 {
			s.t.Fatalf("wants has %d pods:\n%s", active, s.story())
		}
		s.Quota = 4
		s.DeletePod(s.pod("wants-1"))
		s.disturb()
		s.later(5 * time.Minute)
		s.running("holder", "and is to be cut for nobody")
		s.denied("wants")
		for name, r := range s.Reservations {
			if len(r.Status.Cuts) > 0 || r.Status.ActivatedAt != nil {
				s.t.Fatalf("Reservation %s was activated: %+v", name, r.Status)
			}
		}
	})
}

// A Run whose pods cannot be made, for something that might pass, does not keep others from its room for ever.
func TestARunWhosePodsCannotBeMadeLetsOthersGo(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.Faults.Add(sim.Fault{Of: sim.Creations, After: 2, Do: sim.Away, Lasts: true})
		s.submit("broken", "org:a", 1, 4, 2)
		s.during(time.Second)
		s.submit("sound", "org:a", 1, 1, 8)
		s.later(5 * time.Minute)
		s.running("sound", "although the other cannot start")
	})
}

// A Run that had a date gets its room earlier, and its pods are not taken: it has no date any more, and keeps nobody
// from the money.
func TestARunWhosePodsAreNotTakenKeepsNothing(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 8)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0)
		s.work()
		s.during(time.Second)
		s.submit("wants", "org:b", 1, 4, 2)
		s.work()
		if s.Book.Prospect(s.Runs["wants"].UID).Promise == nil {
			s.t.Fatalf("it has no date:\n%s", s.story())
		}
		s.Quota = 3
		s.DeleteRun("holder")
		s.later(5 * time.Second)
		s.denied("wants")
		if p := s.Book.Prospect(s.Runs["wants"].UID).Promise; p != nil {
			s.t.Fatalf("it is promised a start at %s", p.At)
		}
		for name, r := range s.Reservations {
			if !r.Ended() {
				s.t.Fatalf("Reservation %s is %s", name, r.Status.State)
			}
		}
		s.submit("small", "org:b", 1, 1, 2)
		s.work()
		s.running("small", "although nothing is kept for the other")
	})
}

// The pod of a younger Run of its namespace keeps a Run from a quota, for whose start others are cut: it has its turn
// until it has been decided who is.
func TestATurnLastsUntilOthersAreCut(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, checkpointed)
		s.work()
		s.during(time.Minute)
		s.Quota = 1 + 4
		s.submit("older", "org:b", 1, 4, 2)
		s.during(time.Second)
		s.submit("younger", "org:b", 1, 4, 2)
		for range 60 {
			if s.Runs["older"].Status.Phase != rqv1.RunRunning {
				s.later(time.Minute)
			}
		}
		s.running("older", "although its pods fit the quota without the younger one's")
	})
}

// Many Runs whose pods are not taken keep nobody from a date.
func TestNobodyStandsInLineBehindPodsThatAreNotTaken(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 800)
		s.setBudget("b", "org:b", 64)
		for i := range 33 {
			s.Quota = len(s.Pods) + 2
			s.submit(fmt.Sprintf("denied%02d", i), "org:a", 1, 4, 2)
			s.work()
			s.denied(fmt.Sprintf("denied%02d", i))
		}
		s.Quota = 0
		s.submitWithSpares("holder", "org:b", 1, 1, 8, 0, checkpointed)
		s.work()
		s.running("holder", "although nobody else uses the node")
		s.submit("wants", "org:b", 1, 1, 8)
		s.work()
		if p := s.Book.Prospect(s.Runs["wants"].UID); p.Promise == nil {
			s.t.Fatalf("it has no date, but the place %+v", p.InLine)
		}
	})
}

// A Run has passed the barrier and nobody has seen that yet when it loses a rank and its spare, and its other pods go.
// The place that was planned for the next spare goes with the last of them.
func TestNoPlaceOutlastsTheLastPod(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d1", 2)
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 2, 4, 1)
		w.round()
		w.round()
		w.DeletePod(w.pod("run0-0"))
		w.EndPod(w.pod("run0-s0"), corev1.PodSucceeded)
		w.unseen(w.Pass)
		w.setBudget("a", "org:a", 4)
		w.settle()
		w.checkSettled()
	})
}

// A Run loses a rank with its node while another's pods are made, for which its spare is to be dropped, and nobody has
// been told: the rank has the spare's place, and the other is decided anew.
func TestALostRankHasASpareThatIsToBeDroppedForAnother(t *testing.T) {
	for name, at := range map[string]func(s *storm){
		"before rules are asked":   func(s *storm) { s.refused(s.pod("wants-0")) },
		"before its pods are made": func(s *storm) { s.cycle(s.pod("wants-0")) },
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.asks(name == "before rules are asked")
				s.fleet("d0", 2)
				s.setBudget("a", "org:a", 64)
				s.setBudget("b", "org:b", 64)
				s.submitWithSpares("holder", "org:a", 1, 1, 8, 1, checkpointed)
				s.work()
				s.during(time.Minute)
				s.submit("wants", "org:b", 1, 4, 2)
				s.work()
				s.due()
				s.Book.Due(s.Now)
				s.Act()
				at(s)
				if s.Book.Assigned(s.pod("wants-0")) == "" {
					s.t.Fatalf("nothing was decided:\n%s", s.story())
				}
				c := s.Book.Check(s.Runs["wants"].UID, s.Now)
				s.loseRank("holder-0")
				for range 4 {
					for s.Delivers() {
						s.Deliver()
					}
					s.reconcile("holder")
					s.Act()
					if rank, there := s.podsOf("holder")["holder-0"]; there {
						s.cycle(rank)
					}
				}
				if c != nil {
					s.Book.Conclude(c, nil, false, s.Now)
				}
				if on := s.Book.Assigned(s.pod("holder-0")); on != "d0-n01" {
					s.t.Fatalf("the rank is to go to %q although its spare was on d0-n01:\n%s", on, s.story())
				}
				if s.Book.Assigned(s.pod("wants-0")) != "" {
					s.t.Fatalf("the other has its places still:\n%s", s.story())
				}
				s.DeleteRun("wants") // it would draw the holder now
				s.later(time.Minute)
				s.running("holder", "although its spare was there")
				s.expectLedger("holder", map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1})
			})
		})
	}
}
