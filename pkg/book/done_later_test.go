package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// A group of which a pod has completed is made anew as a whole, pods with ranks of their own or not: it starts with all
// of its pods or with none, though what one of them had is kept and what the other had is another Run's by now.
func TestAGroupStartsAgainAfterOneOfItIsDone(t *testing.T) {
	for _, name := range []string{"run0", "run00"} {
		for _, restarts := range []bool{false, true} {
			tell(t, func(w *world) {
				w.fleet("d0", 2)
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares(name, "org:a", 1, 2, 8, 0, ungrouped, theirs)
				w.rounds(3)
				w.running(name, "although its pods are there")
				w.submit("other", "org:a", 1, 1, 8)
				w.succeeds(name, 0)
				w.rounds(3)
				w.running("other", "although what it waits for is free")
				w.forgets(name, 0)
				w.forgets(name, 1)
				w.controllers.done = map[slot]bool{}
				w.rounds(2)
				if restarts {
					w.crash()
				}
				for range 4 {
					w.rounds(4)
					w.Pass(gangDeadline / 2)
				}
				w.waits(name, "with room for one of its two pods")
				if runs := w.runsOf(name); len(runs) > 0 {
					w.t.Fatalf("%v of it start: %s", runs, w.describe(name))
				}
				for _, uid := range w.podsOf("other") {
					w.EndPod(uid, corev1.PodSucceeded)
				}
				w.rounds(6)
				w.running(name, "although there is room for all of it")
				if diff := cmp.Diff([]int{0, 1}, w.runsOf(name)); diff != "" {
					w.t.Fatalf("its pods that run (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Both pods of a group complete at once, others follow them, and another Run has taken the room meanwhile: the group
// waits for its turn like any Run, with a date, and says why.
func TestAllPodsAreDoneAtOnceAndTheirRoomIsTaken(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			s.fleet("d0", 2)
			s.setBudget("a", "org:a", 64)
			s.setBudget("b", "org:b", 64)
			s.submitWithSpares("run2", "org:a", 1, 2, 8, 0, ungrouped, theirs)
			s.work()
			s.running("run2", "although its pods are there")
			s.submit("other", "org:b", 1, 2, 8)
			s.work()
			s.controllers.next[s.Runs["run2"].UID] = 2
			s.succeeds("run2", 0)
			s.succeeds("run2", 1)
			s.rounds(3)
			s.running("other", "although what it waits for is free")
			if restarts {
				s.restart()
			}
			s.work()
			s.waits("run2", "while another Run has its room")
			s.work()
			if run := s.Runs["run2"]; run.Status.Refusal == nil || run.Status.Refusal.Reason != string(plan.InsufficientGPUs) {
				s.t.Errorf("it says %s", run.Status.Message)
			}
			dated := false
			for _, r := range s.Reservations {
				dated = dated || r.Spec.RunRef.Name == "run2" && r.Status.State == rqv1.ReservationPending
			}
			if !dated {
				s.t.Errorf("it has no date: %s\n%s", s.Runs["run2"].Status.Message, s.story())
			}
			s.DeleteRun("other")
			s.work()
			s.running("run2", "although its room is free")
		})
	}
}

// A Job whose pods come in turns leaves what they give back to who is first in its owner's line. In other groups those
// that run may wait for the next, and the first in line for them all.
func TestPodsInTurnLeaveMoneyToTheFirstInLine(t *testing.T) {
	for kind, api := range map[string]string{"Job": "batch", "JobSet": "jobset.x-k8s.io"} {
		t.Run(kind, func(t *testing.T) { inTurn(t, api, kind) })
	}
}

func inTurn(t *testing.T, api, kind string) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 5)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run2", "org:a", 1, 2, 8, 0, ungrouped, theirs, func(spec *rqv1.RunSpec) {
			spec.Pods.APIGroup, spec.Pods.Kind = api, kind
		})
		s.work()
		s.running("run2", "although its pods are there")
		s.submit("large", "org:a", 2, 1, 8)
		s.work()
		s.waitsForLead("large")
		s.controllers.next[s.Runs["run2"].UID] = 1
		s.succeeds("run2", 0)
		s.work()
		s.during(2 * time.Second)
		s.work()
		runs := []int{1}
		if kind != "Job" {
			runs = []int{1, 2}
		}
		if diff := cmp.Diff(runs, s.runsOf("run2")); diff != "" {
			s.t.Fatalf("its pods that run (-want +got):\n%s\n%s", diff, s.story())
		}
		if kind != "Job" {
			return
		}
		s.succeeds("run2", 1)
		s.work()
		s.running("large", "although it is first in line and the money is free")
		for _, uid := range s.podsOf("large") {
			s.EndPod(uid, corev1.PodSucceeded)
		}
		s.work()
		s.during(2 * time.Second)
		s.work()
		if diff := cmp.Diff([]int{2}, s.runsOf("run2")); diff != "" {
			s.t.Fatalf("its pods that run in the end (-want +got):\n%s\n%s", diff, s.story())
		}
	})
}

// A group all of whose pods have ended grows by those that wait, where they may go: what the ended ones tolerate says
// where that is.
func TestAGroupGrowsOnTaintedNodesWhenAllOfItIsDone(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tell(t, func(w *world) {
			w.tolerating()
			w.fleet("d0", 2)
			w.taint("d0-n00")
			w.taint("d0-n01")
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run00", "org:a", 1, 2, 8, 0, ungrouped, theirs)
			w.rounds(3)
			w.running("run00", "although its pods tolerate the taints")
			w.controllers.wants[w.Runs["run00"].UID] = 4
			w.rounds(3)
			w.succeeds("run00", 0)
			w.succeeds("run00", 1)
			w.rounds(2)
			if restarts {
				w.crash()
			}
			for range 8 {
				w.Pass(10 * time.Second)
				w.grow()
				w.rounds(2)
			}
			if diff := cmp.Diff([]int{2, 3}, w.runsOf("run00")); diff != "" {
				w.t.Fatalf("its pods that run (-want +got):\n%s\n%s", diff, w.Runs["run00"].Status.Message)
			}
		})
	}
}
