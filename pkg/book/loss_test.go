package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// loseAny loses a random set of nodes.
func (w *world) loseAny(t *rapid.T) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
		if !w.Lost(name) && rapid.IntRange(0, 2).Draw(t, name) == 0 {
			names = append(names, name)
		}
	}
	w.Lose(names...)
}

// forgiveAny has a person uncordon some of the nodes that are lost.
func (w *world) forgiveAny(t *rapid.T) {
	for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
		if w.Lost(name) && rapid.Bool().Draw(t, name) {
			w.Forgive(name)
		}
	}
}

// guarded starts a Run of one group with a spare a pod of 8 GPUs, on nodes n0, n1, … of one domain, with others of its
// own.
func (w *world) guarded(nodes, pods, spares int, changes ...func(*rqv1.RunSpec)) {
	for i := range nodes {
		w.addNode(fmt.Sprintf("n%d", i), "d0")
	}
	w.setBudget("a", "org:a", 8*(pods+spares))
	w.setBudget("b", "org:b", 64)
	w.submitWithSpares("run0", "org:a", 1, pods, 8, spares, changes...)
	w.settle()
	w.running("run0", "although it fits")
}

func checkpointed(s *rqv1.RunSpec) {
	s.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}}
}

// ledger counts the Leases of a Run: why they closed, or why they were opened if they are open.
func (w *world) ledger(run string) map[string]int {
	out := map[string]int{}
	for _, lease := range w.Leases {
		switch {
		case lease.Spec.RunRef.Name != run:
		case lease.Status.Closed:
			out[string(lease.Status.ClosureReason)]++
		default:
			out["open "+string(lease.Spec.Reason)+" "+string(lease.Spec.Slice.Role)]++
		}
	}
	return out
}

func (w *world) expect(run string, phase rqv1.RunPhase, message string, ledger map[string]int) {
	if got := w.Runs[run].Status; got.Phase != phase || got.Message != message {
		w.t.Fatalf("%s is %s (%s), want %s (%s)", run, got.Phase, got.Message, phase, message)
	}
	w.expectLedger(run, ledger)
	w.checkSettled()
}

func (w *world) expectLedger(run string, ledger map[string]int) {
	if diff := cmp.Diff(ledger, w.ledger(run)); diff != "" {
		w.t.Fatalf("the ledger of %s (-want +got):\n%s", run, diff)
	}
}

const swapped = "group 0 swapped to spare after node failure"

// The end of a pod may be told before that of its node, which was why.
func TestASpareTakesTheRankOfANodeWhoseLossIsToldLate(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(4, 2, 1)
		spare, lost := w.on("run0-s0"), w.on("run0-0")
		node := w.Nodes[lost].DeepCopy()
		node.Spec.Unschedulable = true
		node.Annotations = map[string]string{
			rqv1.AnnotationLost: nodeloss.Record(nodeloss.Verdict{Reason: nodeloss.OutOfService}, w.Now)}
		w.Nodes[lost] = node
		w.DeletePod(w.pod("run0-0"))
		w.rounds(3)
		w.expectLedger("run0", map[string]int{"open Start Active": 2, "open Start Spare": 1})
		w.tellsOfNode(node, "run0")
		w.settle()
		if on := w.on("run0-0"); on != spare {
			w.t.Fatalf("the rank is on %q, want the spare's node %s", on, spare)
		}
		w.expect("run0", rqv1.RunRunning, swapped, map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1,
			"open Start Active": 1, "open Start Spare": 1})
	})
}

func TestASpareTakesTheRankOfALostNode(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(4, 2, 1)
		w.submit("run1", "org:b", 1, 2, 8) // waits, for more than is free
		w.submit("run2", "org:b", 1, 1, 8) // takes what is free
		w.settle()
		spare, other := w.on("run0-s0"), w.pod("run0-1")
		w.Lose(w.on("run0-0"))
		w.settle()
		if on := w.on("run0-0"); on != spare {
			w.t.Fatalf("the rank is on %q, want the spare's node %s", on, spare)
		}
		if w.pod("run0-1") != other {
			w.t.Fatalf("the survivor was touched")
		}
		w.expect("run0", rqv1.RunRunning, swapped, map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1,
			"open Start Active": 1})
	})
}

// A spare comes first, even where other GPUs are free, and who pays stays, though the payer may pay for nothing new.
func TestASwapIsPaidAsBefore(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(5, 2, 1)
		w.setBudget("a", "org:a", 4)
		w.setBudget("rich", "org", 64) // an ancestor's, that pays for what is new
		lost, spare := w.on("run0-0"), w.on("run0-s0")
		w.Lose(lost)
		w.settle()
		if on := w.on("run0-0"); on != spare {
			w.t.Fatalf("the rank is on %q, want the spare's node %s", on, spare)
		}
		for _, lease := range w.OpenLeases() {
			if lease.Spec.Reason == rqv1.ReasonSwap && lease.Spec.Payer.Budget != "a" {
				w.t.Fatalf("%s pays for the swapped rank", lease.Spec.Payer.Budget)
			}
		}
		w.expect("run0", rqv1.RunRunning, swapped,
			map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1, "open Start Active": 1, "open Start Spare": 1})
	})
}

func TestWhatBecomesOfLostRanks(t *testing.T) {
	const failed = "a lost pod could not be replaced and the Run declares no checkpoint: "
	for name, c := range map[string]struct {
		nodes, pods, spares int
		changes             []func(*rqv1.RunSpec)
		lose                []string // the nodes of these pods, one set after the other
		phase               rqv1.RunPhase
		message             string
		ledger              map[string]int
	}{
		"two in one group with one spare, one after the other": {3, 2, 1, nil, []string{"run0-0", "run0-1"}, rqv1.RunFailed,
			failed + "8 H100-80GB GPUs are needed, and 0 fit now: short by 8; domain r/c/d0 comes closest, with room for 0 " +
				"GPUs of the next group", map[string]int{"NodeFailure": 2, "Swap": 1, "Failed": 1}},
		"and with a free node": {4, 2, 1, nil, []string{"run0-0", "run0-1"}, rqv1.RunRunning, swapped,
			map[string]int{"NodeFailure": 2, "Swap": 2, "open Swap Active": 2}},
		"the spare's node": {3, 2, 1, nil, []string{"run0-s0"}, rqv1.RunRunning, "bound 16 GPUs",
			map[string]int{"NodeFailure": 1, "open Start Active": 2}},
		"the spare's node, with a free one": {4, 2, 1, nil, []string{"run0-s0"}, rqv1.RunRunning, "bound 16 GPUs",
			map[string]int{"NodeFailure": 1, "open Start Active": 2, "open Start Spare": 1}},
		"the spare's node and then a rank's": {4, 2, 1, nil, []string{"run0-s0", "run0-1"}, rqv1.RunRunning, swapped,
			map[string]int{"NodeFailure": 2, "Swap": 1, "open Start Active": 1, "open Swap Active": 1}},
		"a free node without a spare": {3, 2, 0, nil, []string{"run0-1"}, rqv1.RunRunning, "bound 16 GPUs",
			map[string]int{"NodeFailure": 1, "open Start Active": 1, "open Swap Active": 1}},
		"no room, with a checkpoint": {2, 2, 0, []func(*rqv1.RunSpec){checkpointed}, []string{"run0-1"}, rqv1.RunPending, "",
			map[string]int{"NodeFailure": 1, "Unwound": 1}},
		"no room, narrower": {3, 3, 0, []func(*rqv1.RunSpec){ungrouped, elastic(1, 1)}, []string{"run0-2"}, rqv1.RunRunning,
			"shrunk to 16 GPUs; short of free GPUs to grow to 24",
			map[string]int{"NodeFailure": 1, "open Start Active": 2}},
		"no room, with the GPUs of the highest step": {3, 3, 0, []func(*rqv1.RunSpec){ungrouped, elastic(1, 1)},
			[]string{"run0-0"}, rqv1.RunRunning,
			"shrunk to 16 GPUs; short of free GPUs to grow to 24",
			map[string]int{"NodeFailure": 1, "Shrink": 1, "open Start Active": 1, "open Swap Active": 1}},
		"no room, by steps": {4, 4, 0, []func(*rqv1.RunSpec){ungrouped, elastic(2, 2)}, []string{"run0-0"}, rqv1.RunRunning,
			"shrunk to 16 GPUs; short of free GPUs to grow to 32",
			map[string]int{"NodeFailure": 1, "Shrink": 2, "open Start Active": 1, "open Swap Active": 1}},
		"no room at the least width": {2, 2, 0, []func(*rqv1.RunSpec){ungrouped, elastic(2, 1), checkpointed},
			[]string{"run0-0"}, rqv1.RunPending, "",
			map[string]int{"NodeFailure": 1, "Unwound": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(c.nodes, c.pods, c.spares, c.changes...)
				for _, pod := range c.lose {
					w.Lose(w.on(pod))
					w.settle()
				}
				message := c.message
				if c.phase == rqv1.RunPending {
					message = w.Runs["run0"].Status.Message // of what it waits for, which is told elsewhere
				}
				w.expect("run0", c.phase, message, c.ledger)
			})
		})
	}
}

// A rank for which there is no spare follows the one that has taken a spare's place, though all others of its group are
// lost.
func TestAGroupStaysTogetherWhenOneRankHasASpare(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run1", "org:a", 1, 1, 4) // has the packer prefer d0 for what is missing
		w.settle()
		w.addNode("n1", "d1")
		w.addNode("n2", "d1")
		w.submitWithSpares("run0", "org:a", 1, 2, 4, 1)
		w.settle()
		w.running("run0", "although it fits")
		if w.on("run0-0") != w.on("run0-1") {
			w.t.Fatalf("the ranks are on %s and %s", w.on("run0-0"), w.on("run0-1"))
		}
		spare := w.on("run0-s0")
		w.Lose(w.on("run0-0"))
		w.settle()
		if zero, one := w.on("run0-0"), w.on("run0-1"); zero != spare || one != spare {
			w.t.Fatalf("the ranks are on %q and %q, want %s", zero, one, spare)
		}
		w.checkSettled()
	})
}

// Nodes that are lost together are one event: nobody is moved from one of them to another.
func TestNodesLostTogether(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, spares int
		lose          []string
		phase         rqv1.RunPhase
		message       string
		ledger        map[string]int
	}{
		"a rank and the first spare": {4, 2, []string{"run0-0", "run0-s0"}, rqv1.RunRunning, swapped,
			map[string]int{"NodeFailure": 2, "Swap": 1, "open Swap Active": 1, "open Start Active": 1}},
		"both ranks": {4, 2, []string{"run0-0", "run0-1"}, rqv1.RunRunning, swapped,
			map[string]int{"NodeFailure": 2, "Swap": 2, "open Swap Active": 2}},
		"both ranks, with one spare and a free node": {4, 1, []string{"run0-0", "run0-1"}, rqv1.RunRunning, swapped,
			map[string]int{"NodeFailure": 2, "Swap": 1, "open Swap Active": 2}},
		"both ranks, with one spare alone": {3, 1, []string{"run0-0", "run0-1"}, rqv1.RunPending, "",
			map[string]int{"NodeFailure": 2, "Swap": 1}},
		"a rank and its only spare, with no free node": {3, 1, []string{"run0-0", "run0-s0"}, rqv1.RunPending, "",
			map[string]int{"NodeFailure": 2, "Unwound": 1}},
		"a rank and its only spare": {4, 1, []string{"run0-0", "run0-s0"}, rqv1.RunRunning, "bound 16 GPUs",
			map[string]int{"NodeFailure": 2, "open Swap Active": 1, "open Start Active": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(c.nodes, 2, c.spares, checkpointed)
				var names []string
				for _, pod := range c.lose {
					names = append(names, w.on(pod))
				}
				w.Lose(names...)
				w.settle()
				message := c.message
				if c.phase == rqv1.RunPending {
					message = w.Runs["run0"].Status.Message
				}
				w.expect("run0", c.phase, message, c.ledger)
			})
		})
	}
}

// A controller that is killed after any of its writes leaves a record that its successor goes by: the spare takes the
// rank, and nobody else takes its room.
func TestKilledWhileItSwaps(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 2, 1)
		w.submit("run1", "org:b", 1, 1, 8)
		w.settle()
		w.Lose(w.on("run0-0"))
		w.dies(rapid.IntRange(1, 12).Draw(w.t, "writes")-1, sim.ByControllers)
		w.settle()
		w.running("run0", "although it has a spare")
		if phase := w.Runs["run1"].Status.Phase; phase != rqv1.RunPending {
			w.t.Fatalf("run1 is %s in the room of a spare", phase)
		}
		want := map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1, "open Start Active": 1}
		if diff := cmp.Diff(want, w.ledger("run0")); diff != "" {
			w.t.Fatalf("the ledger (-want +got):\n%s", diff)
		}
		w.checkSettled()
	})
}

// A replacement that somebody deletes before its spare has made room does not leave that room kept for nobody.
func TestAReplacementIsDeletedBeforeItsSpareGoes(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 2, 1)
		w.Lose(w.on("run0-0"))
		w.reconcile("run0")
		w.reconcile("run0")
		w.DeletePod(w.pod("run0-0"))
		w.settle()
		w.running("run0", "although it has a spare")
		w.checkSettled()
	})
}

// A node that comes back, or flaps, changes nothing that has been decided; a person's word does.
func TestALostNodeStaysLostUntilAPersonSaysOtherwise(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 2, 1)
		lost := w.on("run0-0")
		w.Lose(lost)
		for range rapid.IntRange(0, 6).Draw(w.t, "passes") {
			w.reconcile("run0")
		}
		flap := w.Nodes[lost].DeepCopy()
		flap.Labels["seen"] = "again"
		w.SetNode(flap)
		w.settle()
		if on := w.on("run0-0"); on == lost {
			w.t.Fatalf("the rank is on the lost node")
		}
		w.submit("run1", "org:b", 1, 1, 8)
		w.settle()
		if phase := w.Runs["run1"].Status.Phase; phase != rqv1.RunPending {
			w.t.Fatalf("run1 is %s on a lost node", phase)
		}
		w.Forgive(lost)
		w.settle()
		if on := []string{w.on("run0-s0")}; !slices.Contains(on, lost) {
			w.t.Fatalf("the spare is on %q, want %s, which a person uncordoned", on, lost)
		}
		w.checkSettled()
	})
}

// Pods of a Run that is deleted would terminate for ever on a lost node, and their Leases stay open.
func TestADeletedRunLeavesALostNode(t *testing.T) {
	for name, deletedFirst := range map[string]bool{"before the loss": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(3, 2, 1)
				lost := w.on("run0-0")
				if deletedFirst {
					w.Book.SetLosing([]string{lost}, true) // the kubelet is silent already
				}
				w.Lose(lost)
				w.DeleteRun("run0")
				w.settle()
				if diff := cmp.Diff(map[string]int{"NodeFailure": 1, "Deleted": 2}, w.ledger("run0")); diff != "" {
					w.t.Fatal(diff)
				}
				w.checkSettled()
			})
		})
	}
}

// TestAQuotaThatIsFullForAMomentLosesNoSwap: the pod that replaces a lost one is refused while the lost one is still
// counted. Its rank has its spare all the same, also by a process that begins in between.
func TestAQuotaThatIsFullForAMomentLosesNoSwap(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tell(t, func(w *world) {
			w.guarded(4, 2, 1)
			spare := w.on("run0-s0")
			w.Lose(w.on("run0-0"))
			w.quota(0)
			for range 3 {
				w.reconcile("run0")
				w.Pass(time.Second)
			}
			if restarts {
				w.crash()
			}
			w.quota(-1)
			w.settle()
			if on, said := w.on("run0-0"), w.Runs["run0"].Status.Message; on != spare || said != swapped {
				w.t.Errorf("restarted %v: the rank is on %q, want %s, and its Run says %q", restarts, on, spare, said)
			}
			want := map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1, "open Start Active": 1,
				"open Start Spare": 1}
			if diff := cmp.Diff(want, w.ledger("run0")); diff != "" {
				w.t.Errorf("restarted %v: the ledger (-want +got):\n%s", restarts, diff)
			}
			w.checkSettled()
		})
	}
}
