package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestNobodyEndsForALayoutThatCannotBeHad: a lost rank whose layout no plan can have goes by what nodes have said
// before anybody ends for it. Here the layout has it on a node whose CPUs another Run holds, and there is another node.
func TestNobodyEndsForALayoutThatCannotBeHad(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.class("high", 2000000)
		w.class("low", 1000000)
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("other", "org:a", 1, 1, 4, 0, of("low"), pinnedTo("d0-n03"), withCPU("16", 0))
		w.rounds(4)
		w.submitWithSpares("run0", "org:a", 1, 3, 4, 0, spreadOver(corev1.LabelHostname, 1), withCPU("4", 0), of("high"),
			checkpointed)
		w.rounds(6)
		w.running("run0", "although there is a node for each rank")
		w.addNode("d0-n04", "d0")
		w.Unlaid = true
		w.Lose(w.on("run0-0"))
		w.rounds(2)
		w.Pass(6 * time.Second)
		w.rounds(2)
		w.Pass(6 * time.Second)
		w.Unlaid = false
		w.rounds(20)
		w.running("other", "although nobody is to end")
		w.running("run0", "although there is a node for its rank")
		if got := w.on("run0-0"); got != "d0-n04" {
			w.t.Fatalf("the lost rank is on %q", got)
		}
	})
}

// TestALayoutThatHasServedIsNotInVain: ranks of two groups of others' pods are lost. That of the first is laid out, and
// then that of the second is likewise: no node after the other is asked about that has one of the others.
func TestALayoutThatHasServedIsNotInVain(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.fleet("d0", 12)
		w.setBudget("a", "org:a", 512)
		w.controllers.spread = &corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.DoNotSchedule}
		w.submitWithSpares("run0", "org:a", 2, 4, 4, 0, theirs)
		w.rounds(6)
		w.running("run0", "although there is a node for each pod")
		asked, on := w.Asked, w.boundSlots("run0")
		w.Lose(on[0], on[4])
		w.rounds(12)
		w.running("run0", "although there is a node for each pod")
		if w.Asked > asked+6 {
			w.t.Fatalf("rules were asked %d times: pods are on %v", w.Asked-asked, w.nodesOf("run0"))
		}
	})
}
