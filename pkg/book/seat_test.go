package book_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// A rank that takes a spare's place has those shards leave that are in its way, and no others.
func TestASwapLeavesShardsAloneThatAreNotUnderTheSpare(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 8)
		w.setBudget("b", "org:b", 8)
		w.submitWithSpares("run0", "org:a", 1, 1, 4, 1)
		w.settle()
		w.sweep("run1", "org:b", 6, 2)
		w.settle()
		spare := w.on("run0-s0")
		if w.shards("run1")[spare] != 4 {
			w.t.Fatalf("shards run on %v, want four under and beside the spare", w.shards("run1"))
		}
		w.Lose(w.on("run0-0"))
		w.settle()
		w.expect("run0", rqv1.RunRunning, swapped, map[string]int{"NodeFailure": 1, "Swap": 1, "open Swap Active": 1,
			"open Start Spare": 1})
		w.expect("run1", rqv1.RunRunning, "2 of 6 shards run; the others wait: no idle GPUs fit a shard",
			map[string]int{"NodeFailure": 2, "ReclaimedBySpare": 2, "open Start Borrowed": 2})
	})
}

// formerly is the label in which a node of these tests says where it was.
const formerly = "formerly"

// unlabel takes the fabric domain's label off a node.
func (w *world) unlabel(name string) {
	node := w.Nodes[name].DeepCopy()
	node.Labels[formerly] = w.domainOf(node)
	delete(node.Labels, "fabric.domain")
	w.SetNode(node)
}

// relabel gives it back.
func (w *world) relabel(name string) {
	node := w.Nodes[name].DeepCopy()
	node.Labels["fabric.domain"] = w.domainOf(node)
	delete(node.Labels, formerly)
	w.SetNode(node)
}

// domainOf returns the domain that a node is or was in.
func (w *world) domainOf(node *corev1.Node) string {
	return cmp.Or(node.Labels["fabric.domain"], node.Labels[formerly])
}

// unlabelAny takes the label off a node, or gives it back.
func (w *world) unlabelAny(t *rapid.T) {
	name, ok := pick(t, "node", slices.Sorted(maps.Keys(w.Nodes)))
	switch {
	case !ok:
	case w.Nodes[name].Labels[formerly] != "":
		w.relabel(name)
	default:
		w.unlabel(name)
	}
}

// turnDownAny has another scheduling rule turn a node down from now on, or no more.
func (w *world) turnDownAny(t *rapid.T) {
	name, ok := pick(t, "node", slices.Sorted(maps.Keys(w.Nodes)))
	switch {
	case !ok:
	case w.Rejects[name] != "":
		delete(w.Rejects, name)
	default:
		w.Rejects[name] = "Insufficient cpu"
	}
}

// mend gives all labels back and has no node turned down any more.
func (w *world) mend() {
	clear(w.Rejects)
	for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
		if w.Nodes[name].Labels[formerly] != "" {
			w.relabel(name)
		}
	}
}

// A node that loses a label under a Run takes nothing new, and does not keep the Run's other ranks from being replaced
// in the domain where their group lies.
func TestANodeWithoutItsLabelDoesNotHoldUpReplacements(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, spares int
		unlabel       []string // the nodes of these pods
		restarts      bool
		on            string // the pod whose node the rank gets; "" for the free one
	}{
		"another rank's":                  {4, 0, []string{"run0-1"}, false, ""},
		"all others'":                     {4, 0, []string{"run0-1", "run0-2"}, false, ""},
		"another rank's, after a restart": {4, 0, []string{"run0-1"}, true, ""},
		"another rank's, with a spare":    {5, 1, []string{"run0-1"}, false, "run0-s0"},
		"the spare's":                     {5, 1, []string{"run0-s0"}, false, "run0-s0"},
		"the spare's, after a restart":    {5, 1, []string{"run0-s0"}, true, "run0-s0"},
		"all others' and the spare's, after a restart": {5, 1, []string{"run0-1", "run0-2", "run0-s0"}, true,
			"run0-s0"},
		"all others', after a restart": {4, 0, []string{"run0-1", "run0-2"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(c.nodes, 3, c.spares)
				w.fleet("d1", 2) // another domain with room for the rank, which would part the group
				want := w.on("run0-0")
				for _, node := range slices.Sorted(maps.Keys(w.Nodes)) {
					if c.on == "" && w.Nodes[node].Labels["fabric.domain"] == "d0" && slices.Contains(w.idleNodes(), node) {
						want = node
					}
				}
				if c.on != "" {
					want = w.on(c.on)
				}
				for _, pod := range c.unlabel {
					w.unlabel(w.on(pod))
				}
				if c.restarts {
					w.crash()
				}
				w.Lose(w.on("run0-0"))
				w.settle()
				w.running("run0", "although its domain has room")
				if w.on("run0-0") != want {
					w.t.Fatalf("the rank is on %q, want %s", w.on("run0-0"), want)
				}
			})
		})
	}
}

// twoSpares has the rank of a Run with two spares on one node be lost, and another Run take the room of the spare that
// was to take its place, which the node did not do for at that moment. It returns the node.
func (w *world) twoSpares() (node string) {
	w.fleet("d0", 2)
	w.setBudget("a", "org:a", 64)
	w.setBudget("b", "org:b", 64)
	w.submitWithSpares("run0", "org:a", 1, 1, 4, 2, checkpointed)
	w.settle()
	node = w.on("run0-s0")
	for _, name := range []string{"run1", "run2"} { // run1 goes beside the rank
		w.submit(name, "org:b", 1, 1, 4)
		w.settle()
	}
	w.waits("run2", "without room")
	w.Lose(w.on("run0-0"))
	for range 12 { // until the spare has left, and no longer
		w.reconcile("run0")
		w.Act()
		w.EndPods()
		if !w.holdsSeat("run0-s0") {
			break
		}
		w.Pass(time.Second)
	}
	rank := w.pod("run0-0")
	if on, refusal := w.Book.Place(rank, w.Now); on != node {
		w.t.Fatalf("the rank is to go to %q, want %s: %v", on, node, refusal)
	}
	w.Book.Turned(rank, node, "Insufficient cpu")
	w.Act()
	w.reconcile("run2")
	w.place("run2-0")
	for _, uid := range w.Bindings() {
		w.Bind(uid, sim.Written)
	}
	if on := w.on("run2-0"); on != node {
		w.t.Fatalf("run2 is on %q, want %s", on, node)
	}
	return node
}

// holdsSeat reports whether a spare is there, or its Lease is open.
func (w *world) holdsSeat(spare string) bool {
	for _, pod := range w.Pods {
		if pod.Name == spare {
			return true
		}
	}
	return slices.ContainsFunc(w.OpenLeases(), func(l *rqv1.Lease) bool { return strings.HasPrefix(l.Name, spare+"-") })
}

// The seat of a spare that has gone is nobody's once another Run has its room, whoever else stands by on the node.
func TestASeatThatIsTakenIsNotClaimedBesideAnotherSpare(t *testing.T) {
	for name, again := range map[string]func(w *world){
		"after a restart": (*world).crash,
		"on its way back": func(w *world) {
			w.addNode("m1", "d0")
			w.Act()
			if on, refusal := w.Book.Place(w.pod("run0-0"), w.Now); on != "m1" {
				w.t.Fatalf("the rank is to go to %q: %v", on, refusal)
			}
			w.Lose("m1")
			w.Act()
		},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.twoSpares()
				again(w)
				w.place("run0-0")
				for _, uid := range w.Bindings() {
					w.Bind(uid, sim.Written)
				}
				w.check()
			})
		})
	}
}

// A replacement that somebody deletes, whenever, and the next one that names another spare: the rank has one seat.
func TestAReplacementIsDeletedAndAnotherSpareGoes(t *testing.T) {
	for _, passes := range []int{2, 3, 4, 5, 6} {
		tell(t, func(w *world) {
			w.guarded(4, 2, 2)
			w.Lose(w.on("run0-0"))
			for range passes {
				w.reconcile("run0")
				w.check()
			}
			w.DeletePod(w.pod("run0-0"))
			for range 6 {
				w.reconcile("run0")
				w.check()
			}
			w.settle()
			w.running("run0", "although it has two spares")
			w.checkSettled()
		})
	}
}

// A rank is lost in the second in which its Run starts, by which nobody can tell whether others have been given its
// money since: on the place of its spare it is paid for by whoever pays for that, and not beyond what a Budget allows
// (I3).
func TestARankInASparesPlaceIsPaidForFromWhatIsKept(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 4)
		for _, owner := range []rqv1.Owner{"org:a", "org:b", "org"} {
			s.setBudget(string(owner[len(owner)-1:]), owner, 4)
		}
		s.submitWithSpares("run0", "org:a", 1, 2, 2, 1, checkpointed, lateFirst)
		s.work()
		s.submitWithSpares("run00", "org:a", 1, 3, 2, 0, checkpointed, lateFirst)
		s.work()
		s.running("run00", "although its family pays for it")
		for _, run := range []string{"run0", "run00"} {
			for _, pod := range s.PodsOf(run) {
				if pod.Labels[rqv1.LabelIndex] == map[string]string{"run0": "0", "run00": "2"}[run] &&
					pod.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) {
					s.Evict(pod.UID, "NodeShutdown")
					s.disturb()
				}
			}
		}
		s.step(s.work)
		s.running("run0", "although it has a spare")
	})
}
