package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// slices starts a Run of two groups of two pods of a node each, whose pods others make, in a fleet of so many domains
// of two nodes, on a budget of exactly its size.
func (w *world) slices(domains int, changes ...func(*rqv1.RunSpec)) {
	for i := range domains {
		w.fleet(fmt.Sprintf("d%d", i), 2)
	}
	w.class("high", 2000000)
	w.class("low", 1000000)
	w.setBudget("a", "org:a", 32)
	w.submitWithSpares("run00", "org:a", 2, 2, 8, 0, append([]func(*rqv1.RunSpec){theirs, of("high")}, changes...)...)
	w.rounds(4)
	w.running("run00", "although all its pods are there")
	w.Pass(10 * time.Second)
}

// tenant starts a Run of another Budget that fills the rest of the fleet.
func (w *world) tenant(name string, owner rqv1.Owner, changes ...func(*rqv1.RunSpec)) {
	w.setBudget("others", "org:b", 16)
	w.setBudget("more", "org:a", 16)
	w.submitWithSpares(name, owner, 1, 2, 8, 0, changes...)
	w.rounds(4)
	w.running(name, "although there is room")
	w.Pass(10 * time.Second)
}

// remade loses the node of a pod that others have made, and has all pods of its Run be made anew.
func (w *world) remade(run string, n int) {
	pods := w.Slots(w.Runs[run].UID)
	w.Lose(pods[n][0].Spec.NodeName)
	for _, of := range slices.Sorted(maps.Keys(pods)) {
		w.DeletePod(pods[of][0].UID)
	}
}

// domains returns in which domain each pod of a Run is that others have made.
func (w *world) domains(run string) map[int]string {
	out := map[int]string{}
	for n, node := range w.boundSlots(run) {
		out[n] = w.Nodes[node].Labels["fabric.domain"]
	}
	return out
}

// free returns the first of some domains in which a Run has no pod.
func (w *world) freeOf(run string, domains int) string {
	used := slices.Collect(maps.Values(w.domains(run)))
	for i := range domains {
		if name := fmt.Sprintf("d%d", i); !slices.Contains(used, name) {
			return name
		}
	}
	w.t.Fatalf("%s is everywhere", run)
	return ""
}

// lies asserts where the pods of a Run are, and why its Leases were closed, that it runs and has not been requeued.
func (w *world) lies(run string, domains map[int]string, closed map[rqv1.ClosureReason]int) {
	w.running(run, "although its groups have room")
	if diff := cmp.Diff(domains, w.domains(run)); diff != "" {
		w.t.Fatalf("domains of %s (-want +is):\n%s%s", run, diff, w.describe(run))
	}
	reasons, open := w.closedOf(run)
	if diff := cmp.Diff(closed, reasons); diff != "" || open != len(domains) {
		w.t.Fatalf("%s has %d open Leases; closed (-want +is):\n%s", run, open, diff)
	}
}

// remadeOnce is how the Leases close of a Run of four pods that are made anew since one has lost its node.
var remadeOnce = map[rqv1.ClosureReason]int{rqv1.ClosedNodeFailure: 1, rqv1.ClosedDeleted: 3}

// lateTwo has the first pods of both groups be made before their others.
func lateTwo(r *rqv1.RunSpec) {
	theirs(r)
	r.Pods.Late, r.Pods.First = true, 1
}

// There is neither a spare nor a free node in the domain of a group that has lost a node: it goes on in another domain
// as a whole, and the other group where it was (R42).
func TestAGroupMovesWholeToAFreeSlice(t *testing.T) {
	for _, how := range []func(*rqv1.RunSpec){theirs, lateTwo} {
		for lost := range 4 {
			tell(t, func(w *world) {
				w.slices(3, how)
				want, to := w.domains("run00"), w.freeOf("run00", 3)
				w.remade("run00", lost)
				w.rounds(8)
				want[lost], want[lost^1] = to, to
				w.lies("run00", want, remadeOnce)
				w.settle()
				w.checkSettled()
			})
		}
	}
}

// A pod of a group comes before another: both have their places in the domain where there is room for both, and that of
// the other is kept for it for a time.
func TestPlacesAreKeptWhereAGroupGoesWhole(t *testing.T) {
	for _, comes := range []bool{true, false} {
		tell(t, func(w *world) {
			w.slices(3)
			want, to := w.domains("run00"), w.freeOf("run00", 3)
			w.controllers.less[slot{w.Runs["run00"].UID, 1}] = true
			w.remade("run00", 1)
			w.rounds(6)
			want[0], want[1] = to, to
			delete(want, 1)
			w.lies("run00", want, remadeOnce)
			if held := w.heldGPUs(); held != 32 {
				w.t.Fatalf("%d GPUs are held, want those of the pod that is to come too", held)
			}
			if !comes {
				w.Pass(gangDeadline)
				w.rounds(3)
				if held := w.heldGPUs(); held != 24 {
					w.t.Fatalf("%d GPUs are held, want those of the pods that there are", held)
				}
				return
			}
			delete(w.controllers.less, slot{w.Runs["run00"].UID, 1})
			w.rounds(4)
			want[1] = to
			w.lies("run00", want, remadeOnce)
			w.settle()
			w.checkSettled()
		})
	}
}

// The only other domain is a Run's of lower priority of the same owner: that one waits, and goes on when there is room.
func TestAGroupMovesWholeWhereALowerPriorityWas(t *testing.T) {
	for _, low := range []func(*rqv1.RunSpec){theirs, checkpointed} {
		for _, how := range []func(*rqv1.RunSpec){theirs, lateTwo} {
			tell(t, func(w *world) {
				w.slices(3, how)
				want, to := w.domains("run00"), w.freeOf("run00", 3)
				w.tenant("run11", "org:a", low, of("low"))
				lost := w.boundSlots("run00")[1]
				w.remade("run00", 1)
				w.rounds(12)
				want[0], want[1] = to, to
				w.lies("run00", want, remadeOnce)
				w.waits("run11", "although another has its place")
				if got := w.ledger("run11"); got["PriorityPreempt"] != 2 {
					w.t.Fatalf("its Leases: %v", got)
				}
				w.Forgive(lost)
				w.settle()
				w.running("run11", "although there is room again")
				w.checkSettled()
			})
		}
	}
}

// Nobody ends for a group that is of another owner, or whose priority is no higher, or whose pods may not come.
func TestAGroupThatMovesLeavesOthersAlone(t *testing.T) {
	for name, c := range map[string]struct {
		owner rqv1.Owner
		class string
		less  bool
	}{
		"of the same priority":        {"org:a", "high", false},
		"of another owner":            {"org:b", "low", false},
		"of pods that may never come": {"org:a", "low", true},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.slices(3)
				w.tenant("run11", c.owner, theirs, of(c.class))
				w.controllers.less[slot{w.Runs["run00"].UID, 1}] = c.less
				w.remade("run00", 1)
				w.rounds(8)
				w.lies("run11", w.domains("run11"), map[rqv1.ClosureReason]int{})
			})
		})
	}
}

// One pod alone has lost its node, and is made anew: those of its group that run are told to go, and all go on in
// another domain.
func TestAGroupOfWhichPodsRunMovesWhole(t *testing.T) {
	for lost := range 4 {
		for _, taken := range []bool{false, true} {
			tell(t, func(w *world) {
				w.slices(3)
				want, to := w.domains("run00"), w.freeOf("run00", 3)
				if taken {
					w.tenant("run11", "org:a", theirs, of("low"))
				}
				w.Lose(w.boundSlots("run00")[lost])
				w.rounds(12)
				want[lost], want[lost^1] = to, to
				w.lies("run00", want, map[rqv1.ClosureReason]int{rqv1.ClosedNodeFailure: 1, rqv1.ClosedDeleted: 1})
				if taken {
					w.waits("run11", "although another has its place")
				}
				w.settle()
				w.checkSettled()
			})
		}
	}
}

// Nobody else is given the free GPUs while the pods of a group that moves there leave their domain.
func TestRoomIsKeptForAGroupThatMoves(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.slices(3)
		s.setBudget("b", "org:b", 16)
		want, to := s.domains("run00"), s.freeOf("run00", 3)
		s.Lose(s.boundSlots("run00")[3])
		s.work() // the pod that runs beside it takes two seconds to end
		s.submitWithSpares("run1", "org:b", 1, 2, 8, 0)
		s.work()
		s.waits("run1", "although a group moves to the only domain that has room")
		s.during(3 * time.Second)
		s.work()
		want[2], want[3] = to, to
		s.lies("run00", want, map[rqv1.ClosureReason]int{rqv1.ClosedNodeFailure: 1, rqv1.ClosedDeleted: 1})
	})
}

// A group that has no domain to go to waits for its turn again, as its Run does.
func TestAGroupWithoutAnotherDomainWaits(t *testing.T) {
	for _, all := range []bool{false, true} {
		tell(t, func(w *world) {
			w.slices(2)
			lost := w.boundSlots("run00")[1]
			if all {
				w.remade("run00", 1)
			} else {
				w.Lose(lost)
			}
			w.rounds(8)
			w.waits("run00", "although one of its groups has no room")
			w.Forgive(lost)
			w.settle()
			w.running("run00", "although there is room again")
			w.checkSettled()
		})
	}
}

// A process that takes over in the middle goes on from what it finds.
func TestAGroupMovesWholeAcrossARestart(t *testing.T) {
	for passes := range 8 {
		for kind := range 8 {
			how, taken, all := []func(*rqv1.RunSpec){theirs, lateTwo}[kind%2], kind/2%2 == 0, kind/4 == 0
			tell(t, func(w *world) {
				w.slices(3, how)
				was := w.domains("run00")[0]
				if taken {
					w.tenant("run11", "org:a", theirs, of("low"))
				}
				if all {
					w.remade("run00", 1)
				} else {
					w.Lose(w.boundSlots("run00")[1])
				}
				w.rounds(1)
				for range passes {
					w.control()
					for _, name := range w.Names() {
						w.reconcile(name)
					}
					for _, uid := range w.SortedPods() {
						w.cycle(uid)
					}
					w.check()
				}
				w.crash()
				w.settle()
				w.checkSettled()
				if taken && w.Runs["run00"].Status.Phase == rqv1.RunPending {
					return // what a Run gave it that had been told to go is that one's again: it had just started anew
				}
				w.running("run00", "although there is room")
				if is := w.domains("run00"); is[0] == was || is[0] != is[1] || is[2] != is[3] || len(is) != 4 {
					w.t.Fatalf("its pods lie in %v, of which one has lost a node in %s", is, was)
				}
			})
		}
	}
}
