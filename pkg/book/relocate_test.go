package book_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// fleetOf adds nodes of one domain, and Budgets of two owners.
func (s *storm) fleetOf(nodes ...string) {
	for _, node := range nodes {
		s.addNode(node, "d0")
	}
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
}

// until lets everybody work until a while has passed.
func (s *storm) until(d time.Duration) {
	s.during(d)
	s.Book.Advance(s.Now)
	s.work()
	s.EndPods()
	s.work()
}

// ahead asserts what a Run says of maintenance that is to come: a reason, and part of the message.
func (s *storm) ahead(run, reason, says string) {
	s.t.Helper()
	for _, c := range s.Runs[run].Status.Conditions {
		if c.Type == rqv1.ConditionMaintenanceAhead && c.Status == metav1.ConditionTrue && c.Reason == reason &&
			strings.Contains(c.Message, says) {
			return
		}
	}
	s.t.Fatalf("%s says %+v, want %s: %s", run, s.Runs[run].Status.Conditions, reason, says)
}

// A rank leaves before its node's maintenance, for its spare, in time and not sooner; nobody else is touched.
func TestARankLeavesForItsSpareBeforeMaintenance(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0", "n1", "n2", "n3")
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 1)
		s.submit("run1", "org:b", 1, 1, 8)
		s.work()
		was, spare, other, others := s.on("run0-0"), s.on("run0-s0"), s.pod("run0-1"), s.pod("run1-0")
		s.maintains(was, time.Minute, time.Hour)
		leave := s.Now.Add(time.Minute - 2*noticePeriod)
		s.until(leave.Sub(s.Now) - time.Second)
		if on := s.on("run0-0"); on != was {
			s.t.Fatalf("the rank is on %s too soon, and was on %s", on, was)
		}
		if next, ok := s.Book.Next(s.Now); !ok || next.After(leave) {
			s.t.Fatalf("the book sleeps until %s, %v; ranks leave at %s", next, ok, leave)
		}
		s.until(time.Second)
		s.until(noticePeriod)
		if on := s.on("run0-0"); on != spare {
			s.t.Fatalf("the rank is on %q, want its spare's node %s", on, spare)
		}
		if s.pod("run0-1") != other || s.pod("run1-0") != others || s.Nodes[was].Spec.Unschedulable {
			s.t.Fatalf("somebody else was touched, or the node cordoned")
		}
		s.expect("run0", rqv1.RunRunning, "group 0 swapped to spare before maintenance of node "+was,
			map[string]int{"Maintenance": 1, "Swap": 1, "open Swap Active": 1, "open Start Active": 1})
	})
}

// Without a spare free GPUs serve, for all ranks of a rack at once.
func TestRanksLeaveForFreeGPUsBeforeMaintenance(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0", "n1", "n2")
		s.submit("run0", "org:a", 1, 3, 8)
		s.work()
		stays := s.on("run0-2")
		s.addNode("n3", "d0")
		s.addNode("n4", "d0")
		for _, rank := range []string{"run0-0", "run0-1"} {
			s.maintains(s.on(rank), time.Minute, time.Hour)
		}
		s.until(time.Minute - 2*noticePeriod)
		s.until(noticePeriod)
		for _, rank := range []string{"run0-0", "run0-1"} {
			if on := s.on(rank); on != "n3" && on != "n4" {
				s.t.Fatalf("%s is on %q, want n3 or n4", rank, on)
			}
		}
		if s.on("run0-2") != stays {
			s.t.Fatalf("the rank that stays has moved")
		}
		s.expect("run0", rqv1.RunRunning, "bound 24 GPUs", map[string]int{"Maintenance": 2, "open Swap Active": 2,
			"open Start Active": 1})
	})
}

// A malleable Run goes on narrower where there is no room, and the rank takes the place of the one that goes.
func TestARunGoesOnNarrowerBeforeMaintenance(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0", "n1", "n2")
		s.submitWithSpares("run0", "org:a", 1, 3, 8, 0, ungrouped, elastic(2, 1))
		s.work()
		was, last := s.on("run0-0"), s.on("run0-2")
		s.maintains(was, time.Minute, time.Hour)
		s.until(time.Minute - 2*noticePeriod)
		s.until(noticePeriod)
		if on := s.on("run0-0"); on != last {
			s.t.Fatalf("rank 0 is on %q, want %s", on, last)
		}
		s.expectLedger("run0", map[string]int{"Maintenance": 1, "Shrink": 1, "open Swap Active": 1, "open Start Active": 1})
	})
}

// Who finds no room stays, says so, and is dealt with as any other when the node goes.
func TestARankStaysWithoutRoomBeforeMaintenance(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0", "n1")
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, checkpointed)
		s.submit("run1", "org:b", 1, 1, 8)
		s.work()
		was, others := s.on("run0-0"), s.pod("run1-0")
		s.maintains(was, time.Minute, time.Hour)
		s.until(time.Minute - 2*noticePeriod)
		s.at("run0", was)
		s.ahead("run0", "NowhereToMove", "ranks on "+was+" stay there until their nodes go out of service: rank 0 on node "+
			""+was+
			" has neither a spare nor free GPUs")
		if stuck := s.Book.StuckDrains(); len(stuck) != 1 || stuck[0].Node != was || !stuck[0].Maintained {
			s.t.Fatalf("%+v", stuck)
		}
		if s.pod("run1-0") != others {
			s.t.Fatalf("run1 was cut for it")
		}
		s.Lose(was)
		s.work()
		if phase := s.Runs["run0"].Status.Phase; phase != rqv1.RunPending || s.pod("run1-0") != others {
			s.t.Fatalf("run0 is %s, or run1 was cut", phase)
		}
		s.addNode("n2", "d0")
		s.until(time.Second)
		s.at("run0", "n2")
	})
}

// Room that is kept for a rank which does not leave is given to others in time, and is kept again later.
func TestAPlaceIsNotKeptForEverForMaintenance(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.guardedOn("n0")
		s.addNode("n1", "d0")
		s.maintains("n0", time.Minute, time.Hour)
		s.until(time.Minute - 2*noticePeriod - time.Second)
		s.Guard("run0").Status.DisruptionsAllowed = 1 // somebody writes it again and again
		s.until(time.Second)
		s.submit("run1", "org:b", 1, 1, 8)
		s.until(gangDeadline - time.Second)
		s.at("run1", "")
		s.until(time.Second)
		s.until(5 * time.Second)
		s.at("run1", "n1")
		s.ahead("run0", "NowhereToMove", "within "+gangDeadline.String()+" while a place was kept for it")
		s.DeleteRun("run1")
		s.work()
		s.until(gangDeadline)
		s.submit("run2", "org:b", 1, 1, 8)
		s.until(time.Second)
		s.at("run2", "")
		s.Guard("run0").Status.DisruptionsAllowed = 0
		s.until(time.Second)
		s.until(noticePeriod)
		s.until(time.Second)
		s.at("run0", "n1")
	})
}

// A rank leaves sooner right after its work has been saved, within a checkpoint interval of when it would leave.
func TestARankLeavesRightAfterASave(t *testing.T) {
	for name, c := range map[string]struct {
		before time.Duration // that it would leave anyway
		saved  time.Duration // before that
		leaves bool
	}{
		"just now":     {50 * time.Second, 0, true},
		"a while ago":  {50 * time.Second, 2 * noticePeriod, false},
		"much sooner":  {70 * time.Second, 0, false},
		"never so far": {50 * time.Second, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleetOf("n0")
				s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, checkpointed) // every minute
				s.work()
				s.addNode("n1", "d0")
				s.maintains("n0", time.Hour, time.Hour)
				s.until(time.Hour - 2*noticePeriod - c.before)
				if c.saved >= 0 {
					run := s.Runs["run0"].DeepCopy()
					run.Annotations = map[string]string{rqv1.AnnotationSavedAt: s.Now.Add(-c.saved).UTC().Format(time.RFC3339)}
					s.SetRun(run)
				}
				s.until(0)
				s.until(noticePeriod)
				if s.runsOn("run0") == "n1" != c.leaves {
					s.t.Fatalf("run0 is on %q", s.runsOn("run0"))
				}
			})
		})
	}
}

// A Run that ends before the maintenance starts stays. An opportunistic one ends, and goes where GPUs are idle.
func TestWhoEndsBeforeMaintenanceStays(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0")
		s.submitWithSpares("run0", "org:a", 1, 1, 4, 0, lasting(59*time.Second))
		s.submitWithSpares("run1", "org:b", 1, 1, 4, 0, func(r *rqv1.RunSpec) { r.Opportunistic = true })
		s.work()
		s.addNode("n1", "d0")
		s.maintains("n0", time.Minute, time.Hour)
		s.until(time.Minute - 2*noticePeriod)
		s.until(time.Second)
		s.until(time.Second)
		s.at("run0", "n0")
		s.at("run1", "n1")
		s.expectLedger("run1", map[string]int{"Maintenance": 1, "open Start Borrowed": 1})
	})
}

// A spare leaves a node that is to be maintained, after the ranks have what is free.
func TestASpareLeavesBeforeMaintenance(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0", "n1")
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		s.work()
		s.addNode("n2", "d0")
		for _, node := range []string{"n0", "n1"} {
			s.maintains(node, time.Minute, time.Hour)
		}
		s.until(time.Minute - 2*noticePeriod)
		s.until(noticePeriod)
		s.at("run0", "n2")
		s.addNode("n3", "d0")
		s.until(time.Second)
		if on := s.on("run0-s0"); on != "n3" {
			s.t.Fatalf("the spare is on %q, want n3", on)
		}
	})
}

// Wherever the process dies while ranks leave, they have left in the end, and their Run runs.
func TestRanksLeaveWhateverDies(t *testing.T) {
	for after := range 14 {
		tellStorm(t, func(s *storm) {
			s.fleetOf("n0", "n1", "n2", "n3", "n4")
			s.submitWithSpares("run0", "org:a", 1, 2, 8, 1)
			s.work()
			ranks := []string{"run0-0", "run0-1"}
			left := map[string]bool{}
			for _, rank := range ranks {
				left[s.on(rank)] = true
				s.maintains(s.on(rank), time.Minute, time.Hour)
			}
			s.dies(after, sim.All)
			s.during(time.Minute - 2*noticePeriod)
			for range 4 {
				s.step(s.work)
				s.during(time.Second)
			}
			s.Faults.Drop(sim.Crash)
			s.until(time.Second)
			for _, rank := range ranks {
				if on := s.on(rank); on == "" || left[on] {
					s.t.Fatalf("after %d writes %s is on %q; left are %v", after, rank, on, left)
				}
			}
			if run := s.Runs["run0"]; run.Status.Phase != rqv1.RunRunning || s.ledger("run0")["Maintenance"] != 2 {
				s.t.Fatalf("run0 is %s (%s): %v", run.Status.Phase, run.Status.Message, s.ledger("run0"))
			}
		})
	}
}
