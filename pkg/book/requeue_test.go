package book_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// requeued starts a Run with a checkpoint on two nodes, has a younger one wait for a node, and takes one of the first's
// nodes away. Nothing settles from then on: rounds are counted.
func (w *world) requeued(spares int, changes ...func(*rqv1.RunSpec)) (lost string) {
	w.guarded(2+spares, 2, spares, append(changes, checkpointed)...)
	w.Pass(time.Second)
	w.submit("run1", "org:b", 1, 1, 8)
	w.settle()
	lost = w.on("run0-0")
	w.Lose(append([]string{lost}, w.sparesOn("run0")...)...)
	w.rounds(6)
	if run := w.Runs["run0"]; run.Status.Phase != rqv1.RunPending || !meta.IsStatusConditionTrue(run.Status.Conditions,
		rqv1.ConditionRoomKept) {
		w.t.Fatalf("run0 is %s: %+v", run.Status.Phase, run.Status)
	}
	return lost
}

// sparesOn returns the nodes of a Run's spares.
func (w *world) sparesOn(run string) []string {
	var out []string
	for _, pod := range w.Pods {
		if pod.Labels[rqv1.LabelRun] == run && pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) &&
			pod.Spec.NodeName != "" {
			out = append(out, pod.Spec.NodeName)
		}
	}
	return out
}

// rounds lets everybody do their work so many times, a second each, and checks what always holds.
func (w *world) rounds(n int) {
	for range n {
		w.round()
		w.check()
		w.Pass(time.Second)
	}
}

// waits asserts that a Run is Pending.
func (w *world) waits(run, why string) {
	if phase := w.Runs[run].Status.Phase; phase != rqv1.RunPending {
		w.t.Fatalf("%s is %s %s", run, phase, why)
	}
}

func TestARequeuedRunHasItsRoomBackBeforeYoungerOnes(t *testing.T) {
	tell(t, func(w *world) {
		w.requeued(0)
		w.rounds(10)
		w.waits("run1", "in the room of a Run that was requeued")
		w.addNode("n9", "d0")
		w.rounds(6)
		w.running("run0", "although a node has come beside its room")
		w.waits("run1", "although there is no room")
		w.settle()
		w.checkSettled()
		if c := meta.FindStatusCondition(w.Runs["run0"].Status.Conditions, rqv1.ConditionRoomKept); c.Reason != "Started" {
			w.t.Fatalf("its room is kept: %+v", c)
		}
	})
}

// The deadline is of what is kept, and runs from when the last of the old pods is gone.
func TestARequeuedRunLosesItsRoomWhenItDoesNotStart(t *testing.T) {
	tell(t, func(w *world) {
		w.requeued(0)
		w.rounds(int(gangDeadline/time.Second) - 10)
		w.waits("run1", "before the deadline")
		w.rounds(20)
		w.running("run1", "although the deadline has passed")
		w.waits("run0", "without room")
		if c := meta.FindStatusCondition(w.Runs["run0"].Status.Conditions, rqv1.ConditionRoomKept); c.Reason != "Lapsed" {
			w.t.Fatalf("its room is kept: %+v", c)
		}
		w.settle()
		w.checkSettled()
	})
}

// Money is kept as well, also that of the rank whose node is lost.
func TestARequeuedRunKeepsItsMoney(t *testing.T) {
	tell(t, func(w *world) {
		w.requeued(0)
		w.submit("run2", "org:a", 1, 1, 8) // of the same owner, whose Budget pays for the requeued Run and no more
		w.addNode("n8", "d1")
		w.rounds(3)
		w.running("run1", "although a node of another domain has come")
		w.addNode("n7", "d1")
		w.rounds(3)
		w.waits("run2", "on the money of a Run that was requeued")
		w.addNode("n9", "d0")
		w.rounds(6)
		w.running("run0", "although a node has come beside its room")
		w.settle()
		w.checkSettled()
	})
}

// It is kept too when the room that was kept is lost after it has been given to the Run again.
func TestARequeuedRunKeepsItsMoneyWhenItLosesItsRoom(t *testing.T) {
	tell(t, func(w *world) {
		kept := "n0"
		if w.requeued(0) == kept {
			kept = "n1"
		}
		w.submit("run2", "org:a", 1, 1, 8) // of the same owner, whose Budget pays for the requeued Run and no more
		w.addNode("n8", "d1")
		w.addNode("n7", "d1")
		w.rounds(4)
		w.addNode("n9", "d0")
		if node, refusal := w.Book.Place(w.pod("run0-0"), w.Now); node == "" {
			w.t.Fatal(refusal)
		}
		w.Lose(kept)
		w.rounds(8)
		w.waits("run0", "on one node")
		w.waits("run2", "on the money of a Run that was requeued")
	})
}

// A Run keeps its room for a node's loss alone: a rank that somebody ended, and that its node does not take again, is
// none.
func TestARunThatLostNoNodeKeepsNoRoom(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 2, 0, checkpointed)
		w.Pass(time.Second)
		w.submit("run1", "org:b", 1, 1, 8)
		w.settle()
		node := w.Nodes[w.on("run0-0")].DeepCopy()
		node.Spec.Unschedulable = true
		w.SetNode(node)
		w.DeletePod(w.pod("run0-0"))
		w.rounds(10)
		w.running("run0", "although its node may be back")
		w.Pass(gangDeadline)
		w.rounds(10)
		w.waits("run0", "although a rank of it has no room")
		if c := meta.FindStatusCondition(w.Runs["run0"].Status.Conditions, rqv1.ConditionRoomKept); c != nil {
			w.t.Fatalf("its room is kept: %+v", c)
		}
		w.running("run1", "although what run0 held is everybody's")
		w.settle()
		w.checkSettled()
	})
}

// A process that is killed meanwhile leaves what its successor goes by.
func TestARequeuedRunHasItsRoomBackAfterARestart(t *testing.T) {
	tell(t, func(w *world) {
		w.dies(rapid.IntRange(0, 12).Draw(w.t, "writes")-1, sim.ByControllers)
		w.guarded(2, 2, 0, checkpointed)
		w.Pass(time.Second)
		w.submit("run1", "org:b", 1, 1, 8)
		w.settle()
		w.Lose(w.on("run0-0"))
		w.dies(rapid.IntRange(0, 12).Draw(w.t, "writes")-1, sim.ByControllers)
		w.rounds(6)
		w.crash()
		w.rounds(3)
		w.waits("run1", "in the room of a Run that was requeued")
		w.addNode("n9", "d0")
		w.rounds(6)
		w.running("run0", "although a node has come beside its room")
		w.waits("run1", "although there is no room")
		w.settle()
		w.checkSettled()
	})
}

// A gang that has its places, and whose pods are turned down then, has its room still.
func TestARequeuedRunThatIsTurnedDownKeepsItsRoom(t *testing.T) {
	tell(t, func(w *world) {
		w.requeued(0)
		w.Rejects["n9"] = "Insufficient cpu"
		w.addNode("n9", "d0")
		w.rounds(10)
		w.waits("run0", "on a node that turns it down")
		if run := w.Runs["run1"]; run.Status.Phase == rqv1.RunRunning && w.on("run1-0") != "n9" {
			w.t.Fatalf("run1 runs on %s", w.on("run1-0"))
		}
		w.DeleteRun("run1")
		delete(w.Rejects, "n9")
		w.rounds(10)
		w.running("run0", "although the node takes it by now")
		w.settle()
		w.checkSettled()
	})
}

// Spares' room is part of it, and a Run that was cut keeps nothing.
func TestWhatARequeuedRunKeeps(t *testing.T) {
	tell(t, func(w *world) {
		w.requeued(1)
		w.rounds(5)
		w.waits("run1", "in the room of a Run that was requeued")
		w.settle()
		w.checkSettled()
	})
	tell(t, func(w *world) {
		w.guarded(2, 2, 0, checkpointed)
		w.Pass(time.Minute)
		w.submit("run1", "org:b", 1, 1, 8)
		w.settle()
		w.activation = w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run0"}, GPUs: 16, Action: rqv1.CutLottery})
		w.Book.SetReservation(w.activation)
		w.rounds(6)
		if meta.FindStatusCondition(w.Runs["run0"].Status.Conditions, rqv1.ConditionRoomKept) != nil {
			w.t.Fatalf("a Run that was cut keeps its room: %+v", w.Runs["run0"].Status)
		}
	})
}

// What a requeued Run does not need of its money, because it is given places for a narrower width, stays its own until
// it runs: it may have to give the places back, and nobody's Budget pays twice.
func TestARequeuedRunKeepsTheMoneyOfRanksThatItDoesWithout(t *testing.T) {
	for name, domain := range map[string]string{"money alone": "d0", "its room is taken": "d1"} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				for i := range 3 {
					w.addNode(fmt.Sprintf("n%d", i), "d0")
				}
				w.setBudget("a", "org:a", 24)
				w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, checkpointed, elastic(2, 1), func(s *rqv1.RunSpec) {
					s.Locality.AllowCrossGroupSpread = new(bool)
				})
				w.settle()
				w.granted("run0", 24)
				w.Lose(w.on("run0-0"), w.on("run0-1"))
				w.rounds(6)
				w.waits("run0", "on one node")
				if domain == "d1" {
					w.addNode("n8", domain)
				}
				w.addNode("n9", domain)
				w.reconcile("run0")
				w.Act()
				if node, refusal := w.Book.Place(w.pod("run0-0"), w.Now); node == "" {
					w.t.Fatal(refusal)
				}
				w.submit("run2", "org:a", 1, 1, 8)
				w.addNode("m0", "d1")
				w.reconcile("run2")
				w.Act()
				for _, uid := range w.SortedPods() {
					if w.Pods[uid].Labels[rqv1.LabelRun] == "run2" {
						w.cycle(uid)
					}
				}
				for _, uid := range w.Bindings() {
					w.Bind(uid, sim.Written)
				}
				w.reconcile("run2")
				w.Lose("n9")
				for i := range 3 {
					w.addNode(fmt.Sprintf("m%d", i+1), "d0")
				}
				w.settle()
				for payer, gpus := range w.Book.Budgets.Usage() {
					if gpus > 24 {
						w.t.Fatalf("%s pays for %d GPUs of 24", payer, gpus)
					}
				}
			})
		})
	}
}
