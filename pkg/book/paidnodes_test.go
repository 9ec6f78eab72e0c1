package book_test

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// payOn has the Budget of an owner pay for so many GPUs on the nodes of a pool alone.
func (w *world) payOn(name string, owner rqv1.Owner, gpus int, pool string) {
	w.setBudget(name, owner, gpus)
	b := w.Budgets[name].DeepCopy()
	b.Spec.Envelopes[0].Selector = map[string]string{"pool": pool}
	b.Generation++
	w.NextUID++
	w.SetBudget(b)
}

// label puts a node into a pool.
func (w *world) label(name, pool string) {
	node := w.Nodes[name].DeepCopy()
	node.Labels["pool"] = pool
	w.SetNode(node)
}

// keptFrom asserts that it is a rule on one node that keeps a Run from its start, and that money for others would help.
func (w *world) keptFrom(run, node string) {
	w.t.Helper()
	r := w.Book.Refusal(w.Runs[run].UID)
	if r == nil || r.Reason != plan.NodesRejected || r.Rejected == nil || r.Rejected.Node != node || !r.Elsewhere {
		w.t.Fatalf("%s is refused with %+v, want for %s", run, r, node)
	}
}

// A Run that is refused since the nodes that the money is for turn its pods down starts once they no longer do, and
// once there are others that the money is for.
func TestMoneyThatIsForNodesThatTurnPodsDown(t *testing.T) {
	for name, change := range map[string]func(*world){
		"they no longer do":     func(w *world) { clear(w.Rejects) },
		"another is relabelled": func(w *world) { w.label("n0", "odd") },
		"another is added":      func(w *world) { w.addNode("n3", "d0") },
		"money for others":      func(w *world) { w.setBudget("a", "org:a", 8) },
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.addNode("n0", "d0")
				w.addNode("n1", "d0")
				w.payOn("a", "org:a", 8, "odd")
				w.Rejects["n1"] = "Insufficient cpu"
				w.submit("run0", "org:a", 1, 1, 8)
				w.settle()
				w.keptFrom("run0", "n1")
				change(w)
				w.rounds(10)
				w.running("run0", "although it fits where the money is for")
			})
		})
	}
}

// A node has too little beside GPUs, and the money is for no other: the Run is tried again as soon as either changes,
// and not before.
func TestMoneyThatIsForNodesThatLackSomethingBeside(t *testing.T) {
	for name, change := range map[string]func(*world){
		"its CPUs are free": func(w *world) { w.DropBystander("loner") },
		"money for others":  func(w *world) { w.setBudget("a", "org:a", 8) },
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.addNode("n0", "d0")
				w.addNode("n1", "d0")
				w.payOn("a", "org:a", 8, "odd")
				w.bystander("loner", "n1", "15", 0)
				w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, withCPU("4", 0))
				w.settle()
				w.keptFrom("run0", "n1")
				if w.Book.Refusal(w.Runs["run0"].UID).Passes() {
					w.t.Fatalf("it is tried again though nothing has changed")
				}
				change(w)
				for range 4 {
					w.round()
				}
				w.running("run0", "although it fits where the money is for")
			})
		})
	}
}
