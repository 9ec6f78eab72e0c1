package book_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// turnOut has the node of a pod turn it away, and everybody do what follows.
func (w *world) turnOut(pod, reason string) (node string) {
	node = w.on(pod)
	w.Evict(w.pod(pod), reason)
	w.settle()
	return node
}

// died asserts what the last death is that a Run tells of.
func (w *world) died(run string, index int32, node, sign string) {
	w.t.Helper()
	deaths := w.Runs[run].Status.Deaths
	if len(deaths) == 0 {
		w.t.Fatalf("%s tells of no death", run)
	}
	d := deaths[len(deaths)-1]
	if d.Index != index || d.Node != node || d.Sign != sign || d.Cause != rqv1.CauseNode {
		w.t.Fatalf("%s tells of %+v, want rank %d ended by node %s with %s", run, d, index, node, sign)
	}
}

func TestARankThatItsNodeEndsIsSwapped(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(4, 2, 1)
		spare, other := w.on("run0-s0"), w.pod("run0-1")
		node := w.turnOut("run0-0", "NodeShutdown")
		if on := w.on("run0-0"); on != spare {
			w.t.Fatalf("the rank is on %q, want the spare's node %s", on, spare)
		}
		if w.pod("run0-1") != other || w.Nodes[node].Spec.Unschedulable {
			w.t.Fatalf("the survivor was touched, or node %s cordoned", node)
		}
		w.died("run0", 0, node, "NodeShutdown")
		w.expect("run0", rqv1.RunRunning, "group 0 swapped to spare after node "+node+" ended a rank (NodeShutdown)",
			map[string]int{"Evicted": 1, "Swap": 1, "open Swap Active": 1, "open Start Active": 1, "open Start Spare": 1})
	})
}

// looked has a Run be looked at, and no time pass.
func (w *world) looked(run string) {
	if err := w.Reconcile(run); err != nil {
		w.t.Fatal(err)
	}
}

// An eviction by the API leaves the pod its grace. Its rank is its spare's where its node is being emptied, also where
// no PodDisruptionBudget had a place be set aside first, and however its program ends; else it goes back.
func TestARankThatIsEvictedIsSwappedOrGoesBack(t *testing.T) {
	for name, phase := range map[string]corev1.PodPhase{
		"gone": "", "failed": corev1.PodFailed, "succeeded": corev1.PodSucceeded,
	} {
		t.Run(name+" from a node in service", func(t *testing.T) {
			tell(t, func(w *world) { w.evictsOne(phase, false) })
		})
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) { w.evictsOne(phase, true) })
		})
	}
}

// evictsOne has people evict a rank that has a spare, from a node that is being emptied or is in service.
func (w *world) evictsOne(phase corev1.PodPhase, emptied bool) {
	w.AtOnce = false
	w.guarded(4, 2, 1, patient(20))
	uid, node := w.pod("run0-0"), w.on("run0-0")
	want := node
	ledger := map[string]int{"Evicted": 1, "open Swap Active": 1, "open Start Active": 1, "open Start Spare": 1}
	if emptied {
		want, ledger["Swap"] = w.on("run0-s0"), 1
		w.cordoned(node, true)
	}
	w.EvictByAPI(uid)
	w.looked("run0")
	if phase != "" {
		w.EndPod(uid, phase)
		w.looked("run0")
	}
	w.DeletePod(uid)
	w.settle()
	if on := w.on("run0-0"); on != want {
		w.t.Fatalf("the rank is on %q, want %s", on, want)
	}
	w.died("run0", 0, node, "EvictionByEvictionAPI")
	w.expectLedger("run0", ledger)
}

// The node that has turned a rank away has room, and would come first.
func TestARankThatItsNodeEndsGoesToAnother(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 1, 0)
		node := w.turnOut("run0-0", "OutOfnvidia.com/gpu")
		if on := w.on("run0-0"); on == "" || on == node {
			w.t.Fatalf("the rank is on %q, want another node than %s", on, node)
		}
		w.died("run0", 0, node, "OutOfnvidia.com/gpu")
		w.crash()
		w.settle()
		w.expect("run0", rqv1.RunRunning, "bound 8 GPUs", map[string]int{"Evicted": 1, "open Swap Active": 1})
	})
}

// A rank that is turned away wherever it goes is not the nodes' fault.
func TestARankThatThreeNodesTurnAwayIsNotTriedOnAFourth(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(5, 1, 0, checkpointed)
		for range 3 {
			w.turnOut("run0-0", "UnexpectedAdmissionError")
		}
		run := w.Runs["run0"]
		if want := "rank 0 was ended or rejected by 3 nodes within 1h0m0s"; run.Status.Phase != rqv1.RunFailed ||
			!strings.HasPrefix(run.Status.Message, want) || !strings.Contains(run.Status.Message, "UnexpectedAdmissionError") {
			w.t.Fatalf("run0 is %s (%s), want it failed: %s", run.Status.Phase, run.Status.Message, want)
		}
		w.checkSettled()
	})
}

// Where there is no room elsewhere it goes back, once: a node that turns it away again is not tried a third time.
func TestARankThatItsNodeEndsWithNoRoomElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		changes []func(*rqv1.RunSpec)
		phase   rqv1.RunPhase
		ledger  map[string]int
	}{
		"with a checkpoint it starts again": {[]func(*rqv1.RunSpec){checkpointed}, rqv1.RunRunning,
			map[string]int{"Evicted": 2, "Unwound": 1, "open Start Active": 2}},
		"elastic it goes on": {[]func(*rqv1.RunSpec){ungrouped, elastic(1, 1)}, rqv1.RunRunning,
			map[string]int{"Evicted": 2, "open Start Active": 1}},
		"without either it fails": {nil, rqv1.RunFailed, map[string]int{"Evicted": 2, "Failed": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(2, 2, 0, c.changes...)
				node := w.turnOut("run0-1", "Terminated")
				w.expect("run0", rqv1.RunRunning, "bound 16 GPUs", map[string]int{"Evicted": 1, "open Swap Active": 1,
					"open Start Active": 1})
				if on := w.on("run0-1"); on != node {
					w.t.Fatalf("the rank is on %q, want it back on %s", on, node)
				}
				w.turnOut("run0-1", "Terminated")
				if got := w.Runs["run0"].Status; got.Phase != c.phase {
					w.t.Fatalf("run0 is %s (%s), want %s", got.Phase, got.Message, c.phase)
				}
				w.expectLedger("run0", c.ledger)
				w.checkSettled()
			})
		})
	}
}

// An elastic Run goes on without a rank that its node has ended, and has that node again hours later.
func TestANodeThatEndedARankIsUsedAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 2, 0, ungrouped, elastic(1, 1))
		w.turnOut("run0-1", "Terminated")
		w.turnOut("run0-1", "Terminated")
		if active, _ := w.countPods("run0"); active != 1 {
			w.t.Fatalf("run0 has %d pods, where it lost one", active)
		}
		for range 4 {
			w.Pass(30 * time.Minute)
			w.settle()
		}
		if active, _ := w.countPods("run0"); active != 2 {
			w.t.Fatalf("run0 has %d pods, although the node has served for two hours", active)
		}
	})
}

// A spare, or a shard, is not sent back to where it was turned away: nobody would stop that. Nor is one that somebody
// has deleted since.
func TestSparesAndShardsKeepOffNodesThatTurnThemAway(t *testing.T) {
	for name, c := range map[string]struct {
		pod    string
		submit func(*world)
	}{
		"spare": {"run0-s0", func(w *world) { w.guarded(4, 1, 1) }},
		"shard": {"run0-0", func(w *world) {
			for _, node := range []string{"n0", "n1", "n2", "n3"} {
				w.addNode(node, "d0")
			}
			w.setBudget("a", "org:a", 8)
			w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(s *rqv1.RunSpec) { s.Opportunistic = true })
			w.settle()
		}},
	} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deleted %v", name, deleted), func(t *testing.T) {
				tell(t, func(w *world) {
					c.submit(w)
					w.keepsOff(c.pod, deleted)
				})
			})
		}
	}
}

// keepsOff has nodes turn a pod away one after the other, which somebody may delete then before anybody has looked.
func (w *world) keepsOff(name string, deleted bool) {
	seen := map[string]bool{}
	for range 2 {
		pod := w.pod(name)
		node := w.Pods[pod].Spec.NodeName
		w.Evict(pod, "UnexpectedAdmissionError")
		if deleted {
			w.DeletePod(pod)
		}
		w.settle()
		if node == "" || seen[node] {
			w.t.Fatalf("%s was on %q, and on %v before", name, node, seen)
		}
		seen[node] = true
	}
	if got := w.ledger("run0")["Evicted"]; got != 2 {
		w.t.Fatalf("%d Leases are closed since a node turned their pods away, want 2: %v", got, w.ledger("run0"))
	}
	w.checkSettled()
}

// One that people had leave comes back, whatever its program said of it.
func TestASpareThatPeopleHaveLeaveComesBack(t *testing.T) {
	tell(t, func(w *world) {
		w.AtOnce = false
		w.guarded(2, 1, 1, patient(20))
		uid, node := w.pod("run0-s0"), w.on("run0-s0")
		w.withGrace(uid, 20)
		w.EvictByAPI(uid)
		w.EndPod(uid, corev1.PodFailed)
		w.DeletePod(uid)
		w.settle()
		if on := w.on("run0-s0"); on != node {
			w.t.Fatalf("the spare is on %q, want it back on %s: %v", on, node, w.ledger("run0"))
		}
	})
}

// What a Run has grown by is not what it ends for: new nodes may be broken.
func TestARankThatARunGrewByDoesNotEndIt(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(1, 2, 0, ungrouped, elastic(1, 1))
		rank0 := w.pod("run0-0")
		for _, node := range []string{"n1", "n2", "n3", "n4", "n5"} {
			w.addNode(node, "d0")
		}
		w.settle()
		for range 5 {
			if w.pod("run0-1") != "" && w.on("run0-1") != "" {
				w.turnOut("run0-1", "UnexpectedAdmissionError")
			}
		}
		if got := w.Runs["run0"].Status; got.Phase != rqv1.RunRunning || w.pod("run0-0") != rank0 {
			w.t.Fatalf("run0 is %s (%s), or its first rank was touched", got.Phase, got.Message)
		}
		w.checkSettled()
	})
}

// A rank is lost once its Lease says so, though the book has not been told yet that its pod is gone: whoever has been
// is about to make it anew.
func TestARankIsLostOnceItsLeaseSaysSo(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(4, 2, 1)
		node, uid := w.on("run0-0"), w.pod("run0-0")
		w.Evict(uid, "NodeShutdown")
		w.reconcile("run0")
		if w.Pods[uid] == nil || w.ledger("run0")["Evicted"] != 1 {
			w.t.Fatalf("the pod is gone, or its Lease open: %v", w.ledger("run0"))
		}
		if lost := w.Book.Prospect(w.Runs["run0"].UID).Lost; lost[0] != node {
			w.t.Fatalf("the lost ranks are %v, want rank 0 of node %s", lost, node)
		}
		w.settle()
		w.checkSettled()
	})
}
