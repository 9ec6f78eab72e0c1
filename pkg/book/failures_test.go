package book_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// podsOf returns the pods of a Run by name.
func (w *world) podsOf(run string) map[string]types.UID {
	out := map[string]types.UID{}
	for _, uid := range w.SortedPods() {
		if w.Pods[uid].Labels[rqv1.LabelRun] == run {
			out[w.Pods[uid].Name] = uid
		}
	}
	return out
}

// unchanged asserts that of some pods only those named were replaced.
func (w *world) unchanged(before map[string]types.UID, replaced ...string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if same := w.Pods[before[name]] != nil; same == slices.Contains(replaced, name) {
			w.t.Fatalf("pod %s is still the same: %v", name, same)
		}
	}
}

// A node is lost while its Run grows: a cohort that loses its node is given up or made whole, one that loses the Run's
// own is given up, the Run goes on as it was, and grows in the end.
func TestANodeIsLostDuringGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		bound int // pods of the cohort
		lose  []string
	}{
		"the Run's, before the cohort is bound":  {0, []string{"run0-0"}},
		"the Run's, while the cohort is bound":   {1, []string{"run0-1"}},
		"the cohort's, before it is bound":       {0, []string{"run0-2"}},
		"the cohort's, while it is bound":        {1, []string{"run0-2"}},
		"the cohort's, once it is bound":         {2, []string{"run0-3"}},
		"the Run's and the cohort's, half bound": {1, []string{"run0-0", "run0-3"}},
		"all of the cohort's, half bound":        {1, []string{"run0-2", "run0-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 2)
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares("run0", "org:a", 2, 1, 8, 0, elastic(2, 2), upTo(1))
				w.settle()
				w.granted("run0", 16)
				before := w.podsOf("run0")
				w.fleet("d1", 4)
				w.Pass(time.Minute)
				w.grow()
				w.reconcile("run0")
				w.reconcile("run0")
				for _, uid := range append(w.SortedPods(), w.SortedPods()...) {
					w.cycle(uid)
				}
				for _, uid := range w.Bindings()[:c.bound] {
					w.Bind(uid, sim.Written)
				}
				var lost, replaced []string
				for _, pod := range c.lose {
					lost = append(lost, w.Book.Assigned(w.pod(pod)))
					if _, own := before[pod]; own {
						replaced = append(replaced, pod)
					}
				}
				w.Lose(lost...)
				w.settle()
				w.granted("run0", 32)
				w.unchanged(before, replaced...)
				w.checkSettled()
			})
		})
	}
}

// A node is lost while its Run gives up steps.
func TestANodeIsLostDuringAVoluntaryShrink(t *testing.T) {
	for name, c := range map[string]struct {
		passes   int // of the controller, before the loss
		lose     string
		replaced []string
		ledger   map[string]int
	}{
		"of a rank that stays, before the status says so": {0, "run0-0", []string{"run0-0", "run0-2", "run0-3"},
			map[string]int{"NodeFailure": 1, "Shrink": 2, "open Start Active": 1, "open Swap Active": 1}},
		"of a rank that stays": {1, "run0-0", []string{"run0-0", "run0-2", "run0-3"},
			map[string]int{"NodeFailure": 1, "Shrink": 2, "open Start Active": 1, "open Swap Active": 1}},
		"of a rank that goes": {1, "run0-3", []string{"run0-2", "run0-3"},
			map[string]int{"NodeFailure": 1, "Shrink": 1, "open Start Active": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(4, 4, 0, ungrouped, elastic(1, 1))
				before := w.podsOf("run0")
				w.desire("run0", 16)
				for range c.passes {
					w.reconcile("run0")
				}
				w.Lose(w.on(c.lose))
				w.settle()
				w.unchanged(before, c.replaced...)
				w.expect("run0", rqv1.RunRunning, "shrunk to 16 GPUs", c.ledger)
			})
		})
	}
}

// Both the spare's node and a rank's are lost: the shards under the spare end with their node, and others give way to
// the rank that has to go elsewhere.
func TestShardsWhenTheSpareIsLostWithARank(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 1, 1)
		w.sweep("run1", "org:b", 8, 2)
		w.settle()
		w.Lose(w.on("run0-0"), w.on("run0-s0"))
		w.settle()
		w.expect("run0", rqv1.RunRunning, "bound 8 GPUs", map[string]int{"NodeFailure": 2, "open Swap Active": 1})
		w.expect("run1", rqv1.RunPending, "0 of 8 shards run; the others wait: no idle GPUs fit a shard",
			map[string]int{"NodeFailure": 4, "Reclaimed": 4})
	})
}

// A group that loses two ranks and has one spare gives the spare to one; the Run gives up a step, whose GPUs the other
// gets.
func TestTwoRanksOfAGroupWithOneSpareAndAStep(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 6) // two groups of two nodes, with a spare each
		w.setBudget("a", "org:a", 48)
		w.submitWithSpares("run0", "org:a", 2, 2, 8, 1, elastic(2, 2))
		w.settle()
		w.granted("run0", 32)
		spare := w.on("run0-s0")
		w.Lose(w.on("run0-0"), w.on("run0-1"))
		w.settle()
		if on := []string{w.on("run0-0"), w.on("run0-1")}; !slices.Contains(on, spare) {
			w.t.Fatalf("the ranks are on %v, and the spare was on %s", on, spare)
		}
		w.granted("run0", 16)
		w.expect("run0", rqv1.RunRunning, "shrunk to 16 GPUs; short of free GPUs to grow to 32",
			map[string]int{"NodeFailure": 2, "Swap": 1, "Shrink": 3, "open Swap Active": 2, "open Start Spare": 1})
	})
}

// activates has run0 of two nodes be cut for run1, as far as all its pods are told to go.
func (s *storm) activates(nodes int) {
	s.fleet("d0", nodes)
	s.setBudget("a", "org:a", 64)
	s.setBudget("b", "org:b", 64)
	s.submit("run0", "org:a", 1, 2, 8)
	s.work()
	s.during(time.Minute)
	s.submit("run1", "org:b", nodes, 1, 8) // more than is free
	if nodes > 2 {
		s.DeleteRun("run1")
		s.submit("run1", "org:b", 2, 1, 8)
	}
	s.work()
	s.due()
	s.work()
	if s.Ends.Len() != 2 {
		s.t.Fatalf("%d pods have been told to go:\n%s", s.Ends.Len(), s.story())
	}
	s.disturb()
}

// rest lets time go by until what is under way has had its time.
func (s *storm) rest() {
	for range 8 {
		s.work()
		s.during(noticePeriod)
	}
	s.during(gangDeadline + time.Second)
	s.work()
	s.checkRecords()
}

// A victim's node, which the Run that it is cut for was to have, is lost before it has left: the Run takes another, or
// waits.
func TestAVictimsNodeIsLost(t *testing.T) {
	for name, nodes := range map[string]int{"another is free": 3, "no other is free": 2} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.activates(nodes)
				ranks := []string{s.on("run0-0"), s.on("run0-1")}
				at := slices.IndexFunc(ranks, func(node string) bool {
					return node == s.Book.Assigned(s.pod("run1-0")) || node == s.Book.Assigned(s.pod("run1-1"))
				})
				s.Lose(ranks[at])
				s.rest()
				if nodes == 2 {
					if phase := s.Runs["run1"].Status.Phase; phase != rqv1.RunPending {
						s.t.Fatalf("run1 is %s without room:\n%s%s", phase, s.story(), s.describe("run1"))
					}
					s.checkSettled()
					s.Forgive(ranks[at])
					s.rest()
				}
				s.running("run1", "although it fits")
				if diff := cmp.Diff(map[string]int{"NodeFailure": 1, "RandomPreempt": 1}, s.ledger("run0")); diff != "" {
					s.t.Fatalf("run0 (-want +got):\n%s", diff)
				}
				s.checkSettled()
			})
		})
	}
}

// A node is lost on which a Run starts, when some of its pods are bound by an activation: it starts as a whole
// elsewhere, or waits and holds nothing.
func TestTheNodeOfARunThatActivatesIsLost(t *testing.T) {
	for name, nodes := range map[string]int{"another is free": 3, "no other is free": 2} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.activates(nodes)
				s.during(noticePeriod)
				s.reconcile("run0")
				for range 2 {
					for _, pod := range []string{"run1-0", "run1-1"} {
						s.place(pod)
					}
				}
				if len(s.Binding) != 2 {
					s.t.Fatalf("%d pods are past the barrier", len(s.Binding))
				}
				s.Bind(s.pod("run1-0"), sim.Written)
				lost := s.on("run1-0")
				s.Lose(lost)
				s.rest()
				if nodes == 2 {
					if phase := s.Runs["run1"].Status.Phase; phase != rqv1.RunPending {
						s.t.Fatalf("run1 is %s without room:\n%s%s", phase, s.story(), s.describe("run1"))
					}
					s.checkSettled()
					s.Forgive(lost)
					s.rest()
				}
				s.running("run1", "although it fits")
				s.checkSettled()
			})
		})
	}
}

// A controller that is killed between two writes of a swap does not forget that there is a spare, though other GPUs are
// free.
func TestASpareIsNotForgottenByWhoIsKilled(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(4, 2, 1)
		spare := w.on("run0-s0")
		w.Lose(w.on("run0-0"))
		w.dies(rapid.IntRange(1, 8).Draw(w.t, "writes")-1, sim.ByControllers)
		w.settle()
		if on := w.on("run0-0"); on != spare {
			w.t.Fatalf("the rank is on %s, want the spare's node %s", on, spare)
		}
		w.expect("run0", rqv1.RunRunning, swapped,
			map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1, "open Start Active": 1, "open Start Spare": 1})
	})
}

// A spare is held anew where shards run: it does not need them to go.
func TestASpareIsHeldAnewUnderShards(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 1, 1)
		w.sweep("run1", "org:b", 8, 2)
		w.settle()
		w.Lose(w.on("run0-0"))
		w.settle()
		w.expect("run0", rqv1.RunRunning, swapped, map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1,
			"open Start Spare": 1})
		w.expect("run1", rqv1.RunRunning, "4 of 8 shards run; the others wait: no idle GPUs fit a shard",
			map[string]int{"ReclaimedBySpare": 4, "open Start Borrowed": 4})
	})
}

// A spare that is made while its Run waits for shards to leave enters the queue when they have: nothing else would wake
// it.
func TestASpareThatIsMadeWhileShardsLeave(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 1, 1)
		w.sweep("run1", "org:b", 8, 2)
		w.settle()
		w.Lose(w.on("run0-0"))
		for range 6 {
			w.reconcile("run0")
			w.Act()
			for _, uid := range w.SortedPods() {
				w.cycle(uid)
			}
		}
		w.DeletePod(w.pod("run0-s0")) // while the rank has its place already
		w.reconcile("run0")
		spare := w.pod("run0-s0")
		if gate := w.Book.Gate(w.Pods[spare]); gate == "" || w.Book.Assigned(spare) != "" {
			w.t.Fatalf("the spare is on %q and its gate %q", w.Book.Assigned(spare), gate)
		}
		w.Act()
		for range 3 {
			w.reconcile("run1")
		}
		if entered := w.Book.TakeActions().Activate; !slices.ContainsFunc(entered, func(pod *corev1.Pod) bool {
			return pod.UID == spare
		}) {
			w.t.Fatalf("the shards have left, and the spare does not enter the queue:\n%s", w.describe("run0"))
		}
	})
}

// TestARunIsLostWithAllNodesOfItsType and has failed, unless it declares a checkpoint, also by a process that begins
// before the ranks are made anew, to which the Run asks for nodes of a type that there is not.
func TestARunIsLostWithAllNodesOfItsType(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		for want, changes := range map[rqv1.RunPhase][]func(*rqv1.RunSpec){
			rqv1.RunFailed: nil, rqv1.RunPending: {checkpointed},
		} {
			tell(t, func(w *world) {
				w.guarded(1, 1, 0, changes...)
				w.RemoveNode(w.on("run0-0"))
				w.quota(0)
				w.reconcile("run0")
				if restarts {
					w.crash()
				}
				w.quota(-1)
				w.settle()
				if got := w.Runs["run0"].Status; got.Phase != want {
					w.t.Errorf("restarted %v: it is %s, want %s: %s", restarts, got.Phase, want, got.Message)
				}
				w.checkSettled()
			})
		}
	}
}
