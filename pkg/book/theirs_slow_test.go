package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// startSlowly has a group of four pods of a node each start of which three are made once the first is ready, which it
// is not. It returns that pod.
func (w *world) startSlowly() types.UID {
	w.fleet("d0", 4)
	w.setBudget("a", "org:a", 40)
	w.Slow, w.controllers.inOrder = true, true
	w.submitWithSpares("run00", "org:a", 1, 4, 8, 0, ungrouped, lateFirst)
	w.rounds(3)
	return w.firstOf("run00")
}

// firstOf returns the only pod that others have made of a Run so far, which runs.
func (w *world) firstOf(run string) (first types.UID) {
	pods := w.Slots(w.Runs[run].UID)
	if on := w.boundSlots(run); len(pods) != 1 || len(on) != 1 {
		w.t.Fatalf("there are pods %v, on %v", pods, on)
	}
	for _, pod := range pods[0] {
		first = pod.UID
	}
	return first
}

// TestAGroupIsNotLateWhileItsFirstPodsBegin: the places of those that are made once others are ready are kept until
// then, and for the deadline after that (R40).
func TestAGroupIsNotLateWhileItsFirstPodsBegin(t *testing.T) {
	tell(t, func(w *world) {
		first := w.startSlowly()
		for range 6 {
			w.Pass(gangDeadline / 2)
			w.rounds(3)
			if held := w.heldGPUs(); held != 32 || w.firstOf("run00") != first {
				t.Fatalf("%d GPUs are held at %s: %s", held, w.Now, w.Runs["run00"].Status.Message)
			}
		}
		w.SetReady(first, true)
		w.Pass(gangDeadline / 2)
		w.rounds(3)
		w.running("run00", "although all its pods are there")
		if w.Pods[first] == nil {
			t.Error("its first pod has been started again")
		}
		w.settle()
		w.checkSettled()
	})
}

// TestAGroupWhoseFirstPodsNeverBegin keeps places for others that nobody pays for, and not without end.
func TestAGroupWhoseFirstPodsNeverBegin(t *testing.T) {
	tell(t, func(w *world) {
		first, began := w.startSlowly(), w.Now
		for w.Pods[first] != nil {
			w.Pass(gangDeadline / 4)
			w.round()
			w.check()
			if w.Now.Sub(began) > (rank.LongestStart+1)*gangDeadline {
				t.Fatalf("it holds %d GPUs after %s: %s", w.heldGPUs(), w.Now.Sub(began), w.Runs["run00"].Status.Message)
			}
		}
		if took := w.Now.Sub(began); took < rank.LongestStart*gangDeadline-5*time.Second {
			t.Errorf("it starts again after %s", took)
		}
		if phase := w.Runs["run00"].Status.Phase; phase != rqv1.RunPending {
			t.Errorf("it is %s", phase)
		}
	})
}

// TestPlacesAreKeptForPodsThatAreMadeLateAfterARestart: what comes once the first pods are ready has its places while
// these begin, whoever schedules by then, also where other rules would be asked about it, for which no pod is there.
func TestPlacesAreKeptForPodsThatAreMadeLateAfterARestart(t *testing.T) {
	var own rqv1.RunSpec
	apart(&own)
	for name, affinity := range map[string]*corev1.Affinity{"": nil,
		"with rules of their own": own.Template.Spec.Affinity} {
		t.Run(name, func(t *testing.T) { keptAfterARestart(t, affinity) })
	}
}

func keptAfterARestart(t *testing.T, affinity *corev1.Affinity) {
	tell(t, func(w *world) {
		w.controllers.affinity = affinity
		w.asks(affinity != nil)
		first := w.startSlowly()
		w.crash()
		w.submitWithSpares("run1", "org:a", 1, 1, 8, 0, ungrouped)
		w.rounds(3)
		if held := w.heldGPUs(); held != 32 || w.firstOf("run00") != first {
			t.Fatalf("%d GPUs are held: %s", held, w.Runs["run00"].Status.Message)
		}
		w.waits("run1", "since all nodes are kept")
		w.Pass(2 * gangDeadline)
		w.rounds(3)
		w.SetReady(first, true)
		w.rounds(6)
		w.running("run00", "although all its pods are there")
		if w.Pods[first] == nil {
			t.Error("its first pod has been started again")
		}
		w.waits("run1", "since all nodes are taken")
		w.settle()
		w.checkSettled()
	})
}
