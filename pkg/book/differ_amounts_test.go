package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// unlike has a Run of pods of so many GPUs start in a domain of so many nodes, of whose ranks each asks for other CPUs
// and some may be on some nodes alone.
func (w *world) unlike(gpus, nodes, groups, spares int, cpus, pinned map[int]string) {
	w.fleet("d0", nodes)
	w.setBudget("a", "org:a", 64)
	w.controllers.cpus, w.controllers.pinned = cpus, pinned
	w.submitWithSpares("run00", "org:a", groups, len(cpus)/groups, gpus, spares, theirs)
	w.rounds(4)
	if bound := len(w.boundSlots("run00")); bound != len(cpus) {
		w.t.Fatalf("%d of its pods are bound: %s", bound, w.Runs["run00"].Status.Message)
	}
}

// spareOn returns the node of the spare of a group of that Run.
func (w *world) spareOn(group string) string {
	for _, l := range w.OpenLeases() {
		if l.Spec.Slice.Role == rqv1.RoleSpare && l.Labels[rqv1.LabelGroupIndex] == group {
			return l.Spec.Slice.Nodes[0].Name
		}
	}
	w.t.Fatalf("group %s has no spare: %s", group, w.Runs["run00"].Status.Message)
	return ""
}

// TestThePlaceOfARankIsKeptWithWhatItAsksFor itself, also by a process that has begun after its pod was gone: what the
// first rank asks for says nothing of it.
func TestThePlaceOfARankIsKeptWithWhatItAsksFor(t *testing.T) {
	for name, cpus := range map[string]map[int]string{
		"more than the first": {0: "2", 1: "12"}, "less than the first": {0: "12", 1: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.unlike(4, 2, 1, 0, cpus, map[int]string{0: "d0-n00", 1: "d0-n01"})
				w.DeletePod(w.Slots(w.Runs["run00"].UID)[1][0].UID)
				w.reconcile("run00")
				w.control()
				w.reconcile("run00")
				w.crash()
				w.submitWithSpares("run1", "org:a", 1, 1, 4, 0, pinnedTo("d0-n01"), withCPU("8", 0))
				w.reconcile("run1")
				w.cycle(w.pod("run1-0"))
				if got, want := w.Book.Assigned(w.pod("run1-0")) != "", cpus[1] == "2"; got != want {
					t.Errorf("another has a place there: %v, want %v", got, want)
				}
				w.rounds(6)
				if on := w.boundSlots("run00"); len(on) != 2 {
					t.Errorf("its pods are on %v: %s", on, w.Runs["run00"].Status.Message)
				}
				w.settle()
				w.checkSettled()
			})
		})
	}
}

// TestASpareHoldsWhatTheRanksOfItsGroupAskFor, and not what those of another group do.
func TestASpareHoldsWhatTheRanksOfItsGroupAskFor(t *testing.T) {
	tell(t, func(w *world) {
		w.unlike(8, 6, 2, 1, map[int]string{0: "2", 1: "2", 2: "7", 3: "7"}, nil)
		for group, cpus := range map[string]int64{"0": 2, "1": 7} {
			node := w.spareOn(group)
			if why := w.withheld(cpuPod("a", "1"), node, cpus); why == "" {
				t.Errorf("the spare of group %s holds less than %d CPUs", group, cpus)
			}
			if why := w.withheld(cpuPod("a", "1"), node, cpus+1); why != "" {
				t.Errorf("the spare of group %s holds more than %d CPUs: %s", group, cpus, why)
			}
		}
	})
}

// TestARankDoesNotTakeThePlaceOfASpareThatHasTooLittleForIt: its group's first rank, which asks for less, would.
func TestARankDoesNotTakeThePlaceOfASpareThatHasTooLittleForIt(t *testing.T) {
	for name, c := range map[string]struct{ pinned map[int]string }{
		"what it asks for":       {map[int]string{0: "d0-n00,d0-n02", 1: "d0-n01,d0-n02,d0-n03"}},
		"which nodes it may use": {map[int]string{0: "d0-n00,d0-n02", 1: "d0-n01,d0-n03"}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.unlike(8, 4, 1, 1, map[int]string{0: "2", 1: "12"}, c.pinned)
				if node := w.spareOn("0"); node != "d0-n02" {
					t.Fatalf("its spare is on %s", node)
				}
				w.bystander("daemon", "d0-n02", "8", 0)
				was := w.boundSlots("run00")[1]
				w.Lose(was)
				w.rounds(20)
				if on := w.boundSlots("run00")[1]; on == "" || on == was || on == "d0-n02" {
					t.Errorf("it goes on on %q: %s", on, w.Runs["run00"].Status.Message)
				}
				w.settle()
				w.checkSettled()
			})
		})
	}
}

// TestASpareComesAgainWhereItsGroupsFirstRankMayBe, though others of its group may not be there.
func TestASpareComesAgainWhereItsGroupsFirstRankMayBe(t *testing.T) {
	tell(t, func(w *world) {
		w.unlike(8, 4, 1, 1, map[int]string{0: "2", 1: "12"}, map[int]string{0: "d0-n00,d0-n02,d0-n03", 1: "d0-n01"})
		was := w.spareOn("0")
		w.Lose(was)
		w.rounds(10)
		if node := w.spareOn("0"); node == was || node == "d0-n01" {
			t.Errorf("its spare is on %s", node)
		}
		w.settle()
		w.checkSettled()
	})
}

// TestNodesLackWhatOneOfThePodsAsksFor: those that have too little for the pod that has no place are told, whatever
// is enough for the first.
func TestNodesLackWhatOneOfThePodsAsksFor(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 64)
		w.bystander("daemon1", "d0-n01", "8", 0)
		w.bystander("daemon2", "d0-n02", "8", 0)
		w.controllers.cpus = map[int]string{0: "2", 1: "12", 2: "12"}
		w.submitWithSpares("run00", "org:a", 1, 3, 8, 0, ungrouped, theirs)
		w.rounds(4)
		r := w.Book.Refusal(w.Runs["run00"].UID)
		if r == nil || r.Rejected == nil || r.Rejected.Nodes != 2 || r.Rejected.Rule != "Insufficient cpu" {
			t.Errorf("it is refused for %+v, with %+v", r, r.Rejected)
		}
	})
}

// TestARankIsNotPlannedAsOneThatHasEnded: the first rank has done its work, and another that asks for less goes on
// where it finds that.
func TestARankIsNotPlannedAsOneThatHasEnded(t *testing.T) {
	tell(t, func(w *world) {
		w.unlike(8, 3, 1, 0, map[int]string{0: "12", 1: "2"}, map[int]string{0: "d0-n00"})
		was := w.boundSlots("run00")[1]
		w.EndPod(w.Slots(w.Runs["run00"].UID)[0][0].UID, corev1.PodSucceeded)
		for _, node := range []string{"d0-n00", "d0-n01", "d0-n02"} {
			w.bystander("daemon-"+node, node, "8", 0)
		}
		w.rounds(2)
		w.Lose(was)
		w.rounds(10)
		if on := w.boundSlots("run00")[1]; on == "" || on == was {
			t.Errorf("it goes on on %q: %s", on, w.Runs["run00"].Status.Message)
		}
		w.settle()
		w.checkSettled()
	})
}

// TestTheRoomOfARankIsKeptOverARequeueWithWhatItAskedFor, and not with what the first rank asks for.
func TestTheRoomOfARankIsKeptOverARequeueWithWhatItAskedFor(t *testing.T) {
	tell(t, func(w *world) {
		w.unlike(4, 2, 1, 0, map[int]string{0: "2", 1: "12"}, map[int]string{0: "d0-n00", 1: "d0-n01"})
		w.Lose("d0-n00")
		w.rounds(6)
		w.waits("run00", "although a node is lost")
		w.crash()
		w.submitWithSpares("run1", "org:a", 1, 1, 4, 0, pinnedTo("d0-n01"), withCPU("8", 0))
		w.rounds(3)
		w.waits("run1", "although the room of a rank is kept there")
		w.addNode("d0-n00", "d0")
		startsWhole(t, w, 2)
	})
}

// TestAPlaceForAPodThatIsMadeLateIsKeptAsOthersOfItsGroupAsk, and not as the first rank does.
func TestAPlaceForAPodThatIsMadeLateIsKeptAsOthersOfItsGroupAsk(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 6)
		w.setBudget("a", "org:a", 64)
		w.bystander("daemon", "d0-n01", "12", 0)
		w.controllers.cpus = map[int]string{0: "2", 1: "2", 2: "7", 3: "7"}
		w.controllers.pinned = map[int]string{0: "d0-n00", 1: "d0-n02", 2: allOf("d0", 6), 3: allOf("d0", 6)}
		w.submitWithSpares("run00", "org:a", 2, 2, 8, 0, theirs, func(s *rqv1.RunSpec) {
			s.Pods.Late, s.Pods.First = true, 3
		})
		startsWhole(t, w, 4)
	})
}

// TestEachShardGoesWhereItFindsWhatItAsksFor itself: what the first asks for says nothing of the others.
func TestEachShardGoesWhereItFindsWhatItAsksFor(t *testing.T) {
	for name, c := range map[string]struct{ cpus, pinned map[int]string }{
		"the first asks for less": {map[int]string{0: "2", 1: "12"}, nil},
		"the first asks for more": {map[int]string{0: "12", 1: "2"}, nil},
		"each has its own node":   {nil, map[int]string{0: "d0-n01", 1: "d0-n00"}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 2)
				w.setBudget("a", "org:a", 64)
				w.bystander("daemon", "d0-n00", "12", 0)
				w.controllers.cpus, w.controllers.pinned = c.cpus, c.pinned
				w.submitWithSpares("run00", "org:a", 1, 2, 4, 0, ungrouped, theirs, opportunistic)
				startsWhole(t, w, 2)
			})
		})
	}
}

// TestItIsToldWhatNodesLackForThePodsThatHaveNoDate, whatever the first of them asks for.
func TestItIsToldWhatNodesLackForThePodsThatHaveNoDate(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("holder", "org:a", 1, 2, 8, 0, withCPU("2", 0), checkpointed)
		s.work()
		s.during(time.Minute)
		s.bystander("daemon", "d0-n00", "10", 0)
		s.controllers.cpus = map[int]string{0: "2", 1: "7", 2: "7"}
		s.submitWithSpares("run00", "org:b", 1, 3, 4, 0, ungrouped, theirs)
		s.bystander("daemon1", "d0-n01", "10", 0)
		for range 5 {
			s.work()
			s.during(reservationLead)
		}
		r := s.Book.Refusal(s.Runs["run00"].UID)
		if r == nil || r.Rejected == nil || r.Rejected.Rule != "Insufficient cpu" {
			t.Errorf("it is refused for %+v", r)
		}
	})
}

// TestNodesLackWhatPodsThatAreMadeLateAskFor: only the first of a group is there, and the others count as it does.
func TestNodesLackWhatPodsThatAreMadeLateAskFor(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 1)
		w.setBudget("a", "org:a", 64)
		w.controllers.cpus = map[int]string{0: "5", 1: "5", 2: "5", 3: "5"}
		w.submitWithSpares("run00", "org:a", 1, 4, 2, 0, lateFirst)
		w.rounds(4)
		r := w.Book.Refusal(w.Runs["run00"].UID)
		if r == nil || r.Rejected == nil || r.Rejected.Rule != "Insufficient cpu" {
			t.Errorf("it is refused for %+v", r)
		}
	})
}

// TestNodesLackWhatPodsOfManyKindsAskFor: of a kind all pods count, however many other kinds there are.
func TestNodesLackWhatPodsOfManyKindsAskFor(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 64)
		w.controllers.cpus = map[int]string{0: "4"}
		for i := range 7 {
			w.controllers.cpus[1+i] = fmt.Sprintf("10%dm", i)
		}
		for i := range 8 {
			w.controllers.cpus[8+i] = "4"
		}
		w.submitWithSpares("run00", "org:a", 1, 16, 1, 0, ungrouped, theirs)
		w.rounds(4)
		r := w.Book.Refusal(w.Runs["run00"].UID)
		if r == nil || r.Rejected == nil || r.Rejected.Rule != "Insufficient cpu" {
			t.Errorf("it is refused for %+v", r)
		}
	})
}

// TestARankTakesThePlaceOfASpareThatIsWhereItMayBe, though another of its group stands by where others of it may.
func TestARankTakesThePlaceOfASpareThatIsWhereItMayBe(t *testing.T) {
	for _, place := range []string{"d0-n02", "d0-n03"} {
		t.Run(place, func(t *testing.T) {
			tell(t, func(w *world) {
				w.unlike(8, 4, 1, 2, map[int]string{0: "2", 1: "2"},
					map[int]string{0: "d0-n00,d0-n02,d0-n03", 1: "d0-n01," + place})
				if on := w.boundSlots("run00"); on[0] != "d0-n00" || on[1] != "d0-n01" {
					t.Fatalf("its ranks are on %v", on)
				}
				look, _ := w.Book.Look(book.Objects{Run: w.Runs["run00"], Pods: w.PodsOf("run00")})
				for _, node := range []string{"d0-n02", "d0-n03"} {
					if !look.AcceptsRank(node, 0) || look.AcceptsRank(node, 1) != (node == place) {
						t.Errorf("%s accepts rank 0: %v, and rank 1: %v", node, look.AcceptsRank(node, 0), look.AcceptsRank(node, 1))
					}
				}
				w.Lose("d0-n01")
				w.rounds(10)
				if on := w.boundSlots("run00")[1]; on != place {
					t.Errorf("the rank is on %q: %s", on, w.Runs["run00"].Status.Message)
				}
				w.settle()
				w.checkSettled()
			})
		})
	}
}

// TestShardsOfManyKindsHaveTheirTurns: where those of the first kinds find nothing, the others are not kept waiting.
func TestShardsOfManyKindsHaveTheirTurns(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 64)
		w.controllers.cpus = map[int]string{}
		for i := range 20 {
			w.controllers.cpus[i] = fmt.Sprint(40 - i) // a node has 16
		}
		for i := range 4 {
			w.controllers.cpus[20+i] = fmt.Sprint(5 - i)
		}
		w.submitWithSpares("run00", "org:a", 1, 24, 1, 0, ungrouped, theirs, opportunistic)
		w.rounds(8)
		if bound := len(w.boundSlots("run00")); bound != 4 {
			t.Errorf("%d of its shards run: %s", bound, w.Runs["run00"].Status.Message)
		}
	})
}
