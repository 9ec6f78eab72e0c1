package book_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestAnActivationGoesOnWhateverIsLeftOfItsVictims starts anew while a Run that is cut has its pod, has a pod that has
// ended, has only a Lease, and has nothing any more: the Run that it is cut for keeps its place, and starts.
func TestAnActivationGoesOnWhateverIsLeftOfItsVictims(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(w *world)
		leaving int
	}{
		"its pod":      {func(*world) {}, 1},
		"an ended pod": {func(w *world) { w.EndPod(w.pod("run0-0"), corev1.PodFailed) }, 1},
		"its Lease":    {func(w *world) { w.DeletePod(w.pod("run0-0")) }, 1},
		"its pod, when it has failed": {func(w *world) {
			run := w.Runs["run0"].DeepCopy()
			run.Status.Phase = rqv1.RunFailed
			w.Runs["run0"] = run
		}, 1},
		"nothing": {func(w *world) {
			w.DeletePod(w.pod("run0-0"))
			w.reconcile("run0")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.addNode("n0", "d0")
				w.setBudget("a", "org:a", 16)
				w.submit("run0", "org:a", 1, 1, 8)
				w.settle()
				w.submit("run1", "org:a", 1, 1, 8)
				w.settle()
				w.Pass(time.Second)
				victim, waits := w.Runs["run0"], w.Runs["run1"]
				w.activation = w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Namespace: "ns", Name: "run0"}, UID: victim.UID,
					Action: rqv1.CutLottery, GPUs: 8})
				w.activation.Labels = map[string]string{rqv1.LabelRunUID: string(waits.UID)}
				w.activation.Status.Lottery = &rqv1.Lottery{Nonce: "revealed"}
				test.happens(w)
				w.crash()
				p := w.Book.Prospect(waits.UID)
				if p.Activation != nil || p.Leaving != test.leaving {
					w.t.Fatalf("it is to publish %+v and waits for %d pods, want %d", p.Activation, p.Leaving, test.leaving)
				}
				w.settle()
				if phase := w.Runs["run1"].Status.Phase; phase != rqv1.RunRunning {
					w.t.Fatalf("the Run that others are cut for is %s: %s", phase, w.Runs["run1"].Status.Message)
				}
			})
		})
	}
}

// TestACutIsOverOnceItsVictimHasLeft has a Run that was cut wait and be placed anew: what it is going to hold then is
// not what it was cut, and the Run that it was cut for is looked at as it leaves.
func TestACutIsOverOnceItsVictimHasLeft(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(s *rqv1.RunSpec) {
			s.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Hour}}
		})
		w.settle()
		w.Pass(time.Second)
		r := w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run0"}, Action: rqv1.CutLottery, GPUs: 8})
		w.Book.SetReservation(r)
		w.Act()
		if !w.Book.Awaited(r) {
			w.t.Fatalf("the cut is over before the Run has been told")
		}
		w.reconcile("run0")
		told := w.Book.TakeActions().Reconcile
		if !slices.Contains(told, types.NamespacedName{Namespace: "ns", Name: "other"}) {
			w.t.Fatalf("the Run that it is cut for is not looked at, only %v", told)
		}
		w.Pass(time.Second)
		w.reconcile("run0")
		if uid := w.place("run0-0"); w.Book.Assigned(uid) == "" || w.Book.Awaited(r) {
			w.t.Fatalf("the Run is to be on %q, and what it holds there is taken for what it was cut", w.Book.Assigned(uid))
		}
	})
}

// TestAnActivationGoesOnWhenItsVictimIsNarrowerAlready starts anew when a Run that is shrunk has its new width in its
// status, and still has its pods.
func TestAnActivationGoesOnWhenItsVictimIsNarrowerAlready(t *testing.T) {
	tell(t, func(w *world) {
		for _, node := range []string{"n0", "n1", "n2"} {
			w.addNode(node, "d0")
		}
		w.setBudget("a", "org:a", 40)
		w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, elastic(1, 1))
		w.settle()
		w.submit("run1", "org:a", 1, 2, 8)
		w.settle()
		w.Pass(time.Second)
		width, waits := int32(8), w.Runs["run1"]
		w.activation = w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run0"}, Action: rqv1.CutShrink, GPUs: 16,
			Width: &width})
		w.activation.Labels = map[string]string{rqv1.LabelRunUID: string(waits.UID)}
		w.activation.Status.Lottery = &rqv1.Lottery{Nonce: "revealed"}
		run := w.Runs["run0"].DeepCopy()
		run.Status.Width.Granted = width
		w.Runs["run0"] = run
		w.crash()
		if p := w.Book.Prospect(waits.UID); p.Activation != nil || p.Leaving != 2 {
			w.t.Fatalf("it is to publish %+v and waits for %d pods, want 2", p.Activation, p.Leaving)
		}
		w.settle()
		if phase := w.Runs["run1"].Status.Phase; phase != rqv1.RunRunning {
			w.t.Fatalf("the Run that another is shrunk for is %s: %s", phase, w.Runs["run1"].Status.Message)
		}
	})
}

// TestADateWhileADeletedRunLeaves works a date out beside the pods and the Lease of a Run that is deleted: they are
// free soon, and only others are cut.
func TestADateWhileADeletedRunLeaves(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 32)
		w.submit("run0", "org:a", 1, 1, 8)
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		w.ForgetRun("run0")
		w.submit("run2", "org:a", 1, 2, 8)
		w.reconcile("run2")
		uid := w.place("run2-0")
		w.reconcile("run2")
		w.Book.Turn(uid, w.Now)
		p := w.Book.Prospect(w.Runs["run2"].UID)
		if p.Promise == nil || len(p.Promise.Conflicts) != 1 || p.Promise.Conflicts[0].Run.Name != "run1" {
			w.t.Fatalf("its promise is %+v, for %v", p.Promise, p.Refusal)
		}
	})
}
