package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestNodesThatTurnEveryRankAway has all nodes of a Run reject whatever comes, as a device plugin that is broken
// everywhere does: soon nobody tries any more.
func TestNodesThatTurnEveryRankAway(t *testing.T) {
	for _, ranks := range []int{4, 8, 9, 12, 20} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			tell(t, func(w *world) {
				w.guarded(ranks, ranks, 0, ungrouped)
				ended := map[int]int{}
				for round := range 40 {
					for _, uid := range w.SortedPods() {
						if p := w.Pods[uid]; p.Spec.NodeName != "" && p.Status.Phase == corev1.PodRunning {
							w.Evict(uid, "UnexpectedAdmissionError")
							ended[round]++
						}
					}
					w.rounds(6)
					w.Pass(time.Second)
				}
				total := 0
				for _, r := range slices.Sorted(maps.Keys(ended)) {
					total += ended[r]
				}
				if got := w.Runs["run0"].Status; got.Phase != rqv1.RunFailed || total > 6*ranks {
					w.t.Fatalf("after %d pods of %d ranks were turned away in %d rounds it is %s (%s)", total, ranks, len(ended),
						got.Phase, got.Message)
				}
			})
		})
	}
}

// TestANodeThatRejectsWhateverComes has one node turn away whatever comes, at once: nobody is sent there without end.
func TestANodeThatRejectsWhateverComes(t *testing.T) {
	for name, ch := range map[string][]func(*rqv1.RunSpec){
		"elastic": {ungrouped, elastic(1, 1)}, "checkpoint": {checkpointed}, "both": {ungrouped, elastic(1, 1), checkpointed},
		"ungrouped": {ungrouped, checkpointed},
	} {
		for _, crashes := range []bool{false, true} {
			t.Run(fmt.Sprint(name, crashes), func(t *testing.T) {
				tell(t, func(w *world) {
					w.guarded(2, 2, 0, ch...)
					bad, ended := w.on("run0-1"), 0
					for range 360 { // an hour
						for _, uid := range w.SortedPods() {
							if p := w.Pods[uid]; p.Spec.NodeName == bad && p.Status.Phase == corev1.PodRunning {
								w.Evict(uid, "UnexpectedAdmissionError")
								ended++
							}
						}
						if crashes {
							w.crash()
						}
						w.round()
						w.check()
						w.Pass(5 * time.Second)
						w.round()
						w.Pass(5 * time.Second)
					}
					if ended > 8 {
						w.t.Fatalf("%d pods were sent to %s: %v", ended, bad, w.ledger("run0"))
					}
				})
			})
		}
	}
}

// TestARankGoesBackBeforeOthersAreEnded has a rank go back to its node rather than take a place from its owner's other
// Run.
func TestARankGoesBackBeforeOthersAreEnded(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		tell(t, func(w *world) {
			high := func(s *rqv1.RunSpec) { s.PriorityClassName = "high" }
			low := func(s *rqv1.RunSpec) { s.PriorityClassName = "low" }
			w.guarded(1, 1, 0, high)
			w.addNode("n1", "d0")
			w.setBudget("a", "org:a", 16)
			w.submitWithSpares("run1", "org:a", 1, 1, 8, 0, low, checkpointed)
			w.settle()
			w.running("run1", "it fits")
			w.Evict(w.pod("run0-0"), "Terminated")
			w.round()
			if crashes {
				w.crash()
			}
			w.settle()
			if on := w.on("run0-0"); on != "n0" {
				w.t.Fatalf("it is on %q", on)
			}
			w.running("run1", "nobody is to be ended for it")
			w.checkSettled()
			w.Evict(w.pod("run0-0"), "Terminated")
			w.settle()
			if on := w.on("run0-0"); on != "n1" {
				w.t.Fatalf("after two it is on %q", on)
			}
			w.checkSettled()
		})
	}
}
