package book_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// evict deletes a rank's pod, and has other scheduling rules turn its node down from then on.
func (w *world) evict(pod string) {
	uid := w.pod(pod)
	w.Rejects[w.Pods[uid].Spec.NodeName] = "Insufficient cpu"
	w.DeletePod(uid)
}

// idleNodes returns the nodes on which no pod runs.
func (w *world) idleNodes() []string {
	var out []string
	for name := range w.Nodes {
		idle := true
		for _, pod := range w.Pods {
			idle = idle && pod.Spec.NodeName != name
		}
		if idle {
			out = append(out, name)
		}
	}
	return out
}

// A rank that the nodes with free GPUs turn down has no room: its spare, a narrower width or a new start follow (R26,
// R27).
func TestWhatBecomesOfRanksThatNodesTurnDown(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, pods, spares int
		changes             []func(*rqv1.RunSpec)
		phase               rqv1.RunPhase
		says                string
		ledger              map[string]int
	}{
		"the spare": {4, 2, 1, nil, rqv1.RunRunning, "bound 16 GPUs",
			map[string]int{"Deleted": 1, "Swap": 1, "open Start Active": 1, "open Swap Active": 1}},
		"narrower": {4, 3, 0, []func(*rqv1.RunSpec){ungrouped, elastic(1, 1)}, rqv1.RunRunning, "shrunk to 16 GPUs",
			map[string]int{"Deleted": 1, "Shrink": 1, "open Start Active": 2}},
		"a new start": {3, 2, 0, []func(*rqv1.RunSpec){checkpointed}, rqv1.RunPending,
			"2 nodes were rejected by other scheduling rules, such as n0: Insufficient cpu",
			map[string]int{"Deleted": 1, "Unwound": 1}},
		"the end": {3, 2, 0, nil, rqv1.RunFailed, "such as n0: Insufficient cpu", map[string]int{"Deleted": 1, "Failed": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(c.nodes, c.pods, c.spares, c.changes...)
				for _, node := range w.idleNodes() {
					w.Rejects[node] = "Insufficient cpu"
				}
				w.evict("run0-0")
				for range 23 { // it does not come to rest, nodes that turn pods down are tried again: until between two tries
					w.round()
					w.Pass(time.Second)
				}
				if got := w.Runs["run0"].Status; got.Phase != c.phase || !strings.Contains(got.Message, c.says) {
					w.t.Fatalf("run0 is %s (%s), want %s (%s)", got.Phase, got.Message, c.phase, c.says)
				}
				got := w.ledger("run0")
				if c.ledger["open Swap Active"] == 0 { // a rank that moved for room is placed anew, whatever that is called
					got["open Start Active"] += got["open Swap Active"]
					delete(got, "open Swap Active")
				}
				for what, n := range c.ledger {
					if got[what] != n {
						w.t.Fatalf("the ledger is %v, want %v", got, c.ledger)
					}
				}
			})
		})
	}
}

// One node that turns a rank down does not end anything: the others are tried first.
func TestARankThatANodeTurnsDownTriesTheOthers(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(5, 2, 1)
		spare, free := w.pod("run0-s0"), w.idleNodes()
		w.evict("run0-0")
		w.Rejects[min(free[0], free[1])] = "Insufficient cpu"
		w.settle()
		w.running("run0", "although a node is free and takes it")
		if w.on("run0-0") != max(free[0], free[1]) || w.pod("run0-s0") != spare {
			w.t.Fatalf("the rank is on %q, want %s, and the spare left alone", w.on("run0-0"), max(free[0], free[1]))
		}
	})
}

// Who paid for a rank goes on paying though the first node turns the new pod down.
func TestARankThatANodeTurnsDownIsPaidAsBefore(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(3, 2, 0)
		w.setBudget("a", "org:a", 4)
		w.evict("run0-0")
		w.settle()
		w.running("run0", "although a node is free and takes it")
	})
}

// A refusal says what is short, and apart from that which nodes other rules turned down.
func TestRefusalsTellRejectionFromShortage(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 1, 8)
		w.settle()
		full, free := w.on("run0-0"), w.idleNodes()[0]
		w.Rejects[free] = "Insufficient cpu"
		w.submit("small", "org:a", 1, 1, 8)
		w.submit("large", "org:a", 1, 2, 8)
		w.settle()
		for run, reason := range map[string]plan.Reason{"small": plan.NodesRejected, "large": plan.InsufficientGPUs} {
			r := w.Book.Refusal(w.Runs[run].UID)
			if r == nil || r.Reason != reason {
				w.t.Fatalf("%s is refused with %+v, want %s; %s is full", run, r, reason, full)
			}
		}
		r := w.Book.Refusal(w.Runs["small"].UID)
		if r.Rejected == nil || *r.Rejected != (plan.Rejection{Nodes: 1, Node: free, Rule: "Insufficient cpu"}) {
			w.t.Fatalf("it names %+v", r.Rejected)
		}
	})
}

// What passes by itself is no reason to end anything, and is called by another name.
func TestARankWaitsForTheLeaseOfItsPredecessor(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 2, 0)
		old := w.Pods[w.pod("run0-0")]
		w.DeletePod(old.UID)
		again := old.DeepCopy()
		again.UID, again.Spec.NodeName, again.Status.Phase = w.UID(), "", corev1.PodPending
		w.SetPod(again)
		w.place("run0-0")
		if r := w.Book.Refusal(w.Runs["run0"].UID); r == nil || r.Reason != plan.NotYet {
			w.t.Fatalf("the rank is refused with %+v", r)
		}
		w.settle()
		w.running("run0", "although its room was kept")
	})
}

// A rank that its spare's node turns down as well has no room, and does not go from spare to spare for ever.
func TestARankThatEveryNodeTurnsDown(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(4, 2, 1)
		for _, node := range append(w.idleNodes(), w.on("run0-s0")) {
			w.Rejects[node] = "Insufficient cpu"
		}
		node := w.Nodes[w.on("run0-0")].DeepCopy()
		node.Spec.Unschedulable = true
		w.SetNode(node)
		w.DeletePod(w.pod("run0-0"))
		w.rounds(30)
		w.running("run0", "although its node is waited for")
		w.Pass(gangDeadline)
		w.rounds(30)
		if run := w.Runs["run0"]; run.Status.Phase != rqv1.RunFailed {
			w.t.Fatalf("run0 is %s (%s): %s", run.Status.Phase, run.Status.Message, w.describe("run0"))
		}
	})
}

// A node whose GPUs are still being given back turns a rank down, and is tried again as soon as somebody has left.
func TestANodeWhoseGPUsAreLeavingIsTriedAgain(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.guarded(3, 2, 0, checkpointed)
		s.addNode("n9", "d1")
		leaves, free := s.foreign("other", "n9", 8), s.idleNodes()[0]
		s.Rejects[free] = "Insufficient nvidia.com/gpu"
		s.RemoveNode(s.on("run0-0"))
		s.reconcile("run0")
		s.reconcile("run0")
		for range 3 {
			s.Act()
			for _, uid := range s.SortedPods() {
				s.cycle(uid)
			}
		}
		clear(s.Rejects)
		s.DeletePod(leaves)
		s.Act()
		if uid := s.place("run0-0"); s.Book.Assigned(uid) != free {
			s.t.Fatalf("the rank has the node %q, want %s: %+v", s.Book.Assigned(uid), free, s.Book.Refusal(s.Runs["run0"].UID))
		}
	})
}

// A pod that holds no GPUs and leaves a node may have been what kept others off it, whatever the rule: the node is
// tried again at once.
func TestANodeThatABystanderLeavesIsTriedAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		w.bystander("loner", "n0", "1", 0)
		w.Turns = func(*corev1.Pod, string) string {
			if len(w.Bystanders) > 0 {
				return "node(s) didn't satisfy existing pods anti-affinity rules"
			}
			return ""
		}
		w.submit("run0", "org:a", 1, 1, 8)
		for range 3 {
			w.round()
		}
		w.DropBystander("loner")
		for range 4 {
			w.round()
		}
		w.running("run0", "although nobody keeps it off")
	})
}

// A start that rules about other pods have refused is tried again soon after something has changed, however often
// others have woken it in vain.
func TestWakesDoNotHaveARunRestLonger(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.asks(true)
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 3, 2, 0, apart)
		for i := range 12 {
			w.submit(fmt.Sprint("beside", i), "org:a", 1, 1, 2)
			w.round()
			w.round()
			w.DeleteRun(fmt.Sprint("beside", i))
			w.round()
		}
		r := w.Book.Refusal(w.Runs["run0"].UID)
		if r == nil || r.Rejected == nil || r.Rejected.Rest > 10*time.Second {
			w.t.Fatalf("it is refused for %+v", r)
		}
		for range 12 { // and longer each time that nothing has
			w.Book.Retry(types.NamespacedName{Namespace: w.Runs["run0"].Namespace, Name: "run0"})
			w.round()
		}
		if r := w.Book.Refusal(w.Runs["run0"].UID); r == nil || r.Rejected == nil || r.Rejected.Rest < 5*time.Minute {
			w.t.Fatalf("it is refused for %+v", r.Rejected)
		}
	})
}
