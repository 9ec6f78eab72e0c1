package book_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// comes makes a pod for a Run that may have any rank.
func (w *world) comes(run string, slot int) {
	w.Make(sim.Foreign{Run: w.Runs[run], Slot: slot, Any: true})
}

// succeeds has a pod of a Run succeed that somebody else has made.
func (w *world) succeeds(run string, slot int) {
	for _, pod := range w.Slots(w.Runs[run].UID)[slot] {
		if pod.Status.Phase == corev1.PodRunning {
			w.EndPod(pod.UID, corev1.PodSucceeded)
		}
	}
}

// runsOf returns which pods of a Run run that somebody else has made.
func (w *world) runsOf(run string) (out []int) {
	for slot, pods := range w.Slots(w.Runs[run].UID) {
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				out = append(out, slot)
			}
		}
	}
	slices.Sort(out)
	return out
}

// reasonOf returns why a Run is where it is.
func (w *world) reasonOf(run string) string {
	return meta.FindStatusCondition(w.Runs[run].Status.Conditions, rqv1.ConditionStarted).Reason
}

// A rank that has completed is not lost, so that the pod which comes into it waits for room and money like any that
// joins, and nobody who runs ends for it.
func TestAPodThatCompletesEndsNobody(t *testing.T) {
	for name, kind := range map[string]struct {
		gpus  int // what Budgets allow both together
		nodes int
		early bool // two more pods of the group have been made before
		goes  bool // the next pod starts at once
	}{
		"short of room, the next pod comes":    {gpus: 64, nodes: 2},
		"short of money, the next pod comes":   {gpus: 16, nodes: 4},
		"short of room, other pods are there":  {gpus: 64, nodes: 2, early: true},
		"short of money, other pods are there": {gpus: 16, nodes: 4, early: true, goes: true},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				tell(t, func(w *world) {
					w.fleet("d0", kind.nodes)
					w.setBudget("a", "org:a", kind.gpus)
					w.submitWithSpares("run2", "org:a", 1, 2, 8, 0, ungrouped, theirs)
					w.rounds(3)
					w.running("run2", "although its pods are there")
					w.submit("other", "org:a", 1, 1, 8)
					if kind.early {
						w.controllers.wants[w.Runs["run2"].UID] = 4
					}
					w.rounds(6)
					w.doneBeside(kind.early, kind.goes, restarts)
				})
			})
		}
	}
}

// doneBeside has the first of two pods be done, of which the other one is never ended, while another Run waits for what
// it had.
func (w *world) doneBeside(early, goes, restarts bool) {
	stays := w.Slots(w.Runs["run2"].UID)[1][0].UID
	runs := func(when string, slots ...int) {
		w.t.Helper()
		if pod := w.Pods[stays]; pod == nil || pod.DeletionTimestamp != nil {
			w.t.Fatalf("%s: the pod that runs is ended: %s", when, w.describe("run2"))
		}
		if diff := cmp.Diff(slots, w.runsOf("run2")); diff != "" {
			w.t.Fatalf("%s: its pods that run (-want +got):\n%s", when, diff)
		}
		w.running("run2", "although a pod of it runs")
	}
	w.succeeds("run2", 0)
	w.rounds(3)
	w.Pass(3 * time.Second)
	w.rounds(3)
	if goes {
		runs("there is room", 1, 2)
		return
	}
	w.running("other", "although what it waits for is free")
	if !early {
		w.comes("run2", 2)
	}
	if restarts {
		w.rounds(1)
		w.crash()
	}
	for range 4 {
		w.rounds(4)
		w.Pass(gangDeadline / 2)
	}
	runs("another Run has what it had", 1)
	if is, said := w.reasonOf("run2"), w.Runs["run2"].Status.Message; is != "PodsWait" {
		w.t.Errorf("it says %s: %s", is, said)
	}
	for _, uid := range w.podsOf("other") {
		w.EndPod(uid, corev1.PodSucceeded)
	}
	w.rounds(6)
	runs("the other Run is done", 1, 2)
	w.settle()
	w.checkSettled()
}

// A group to which pods come for ranks of their own grows once there is room, whichever of its ranks are done, and
// whatever is not to come any more.
func TestAGroupGrowsWhateverIsDone(t *testing.T) {
	for name, goes := range map[string]func(w *world, slot int){
		"done":          func(w *world, slot int) { w.succeeds("run00", slot) },
		"done and gone": func(w *world, slot int) { w.succeeds("run00", slot); w.rounds(2); w.forgets("run00", slot) },
		"failed for good": func(w *world, slot int) {
			w.controllers.less[nthOf(w, slot)] = true
			for _, pod := range w.Slots(w.Runs["run00"].UID)[slot] {
				w.EndPod(pod.UID, corev1.PodFailed)
			}
		},
		"gone for good": func(w *world, slot int) { w.leaves("run00", slot) },
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				tell(t, func(w *world) {
					w.fleet("d0", 2)
					w.setBudget("a", "org:a", 64)
					w.submitWithSpares("run00", "org:a", 1, 2, 8, 0, ungrouped, theirs)
					w.rounds(3)
					w.running("run00", "although its pods are there")
					w.controllers.wants[w.Runs["run00"].UID] = 4
					w.rounds(3)
					for slot, want := range [][]int{{1, 2}, {2, 3}} {
						goes(w, slot)
						if restarts {
							w.rounds(1)
							w.crash()
						}
						for range 12 {
							w.Pass(10 * time.Second)
							w.grow()
							w.rounds(2)
						}
						if diff := cmp.Diff(want, w.runsOf("run00")); diff != "" {
							t.Fatalf("after %d its pods that run (-want +got):\n%s\n%s", slot, diff, w.Runs["run00"].Status.Message)
						}
					}
				})
			})
		}
	}
}

// Nothing is kept for a rank of which others say that its pod has failed for good, and until they do it is said that it
// restarts, as often as they like.
func TestARankThatFailedForGood(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		uid := w.Runs["run00"].UID
		w.controllers.less[slot{uid, 1}] = true
		w.EndPod(w.Slots(uid)[1][0].UID, corev1.PodFailed)
		w.rounds(3)
		want := "restarting 1 of 4 ranks (restart 1): "
		if said := w.Runs["run00"].Status.Message; !strings.HasPrefix(said, want) {
			t.Errorf("it says %s", said)
		}
		w.controllers.wants[uid] = 3
		w.resize(w.Runs["run00"])
		w.rounds(3)
		if held := w.heldGPUs(); held != 24 {
			t.Errorf("%d GPUs are held, want those of the pods that run", held)
		}
		if said := w.Runs["run00"].Status.Message; said != "bound 24 GPUs" {
			t.Errorf("it says %s", said)
		}
	})
}

// nthOf is a pod of the only group.
func nthOf(w *world, n int) slot { return slot{w.Runs["run00"].UID, n} }

// forgets has what has ended be gone.
func (w *world) forgets(run string, n int) {
	for _, pod := range w.Slots(w.Runs[run].UID)[n] {
		w.DeletePod(pod.UID)
	}
}

// The next pod of a rank that is done may be there before the Lease of the one before is known to be closed: that it is
// refused then, since that one still has the room and the money, is no reason for anybody to end.
func TestTheNextPodComesBeforeTheLeaseIsClosed(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run2", "org:a", 1, 2, 8, 0, ungrouped, theirs)
		w.rounds(3)
		w.running("run2", "although its pods are there")
		uid := w.Runs["run2"].UID
		next := w.Slots(uid)[0][0].DeepCopy()
		next.Name, next.UID, next.Spec.NodeName, next.Status = "next", "next", "", corev1.PodStatus{}
		w.Faults.Add(sim.Fault{Of: sim.Closings, Do: sim.Away, Lasts: true})
		w.succeeds("run2", 0)
		w.SetPod(next)
		w.rounds(1)
		if r := w.Book.Refusal(uid); r == nil || r.Reason != plan.NotYet {
			w.t.Errorf("it is refused so: %+v", r)
		}
		w.Faults.Drop(sim.Away)
		w.rounds(4)
		if node := w.Pods["next"].Spec.NodeName; node == "" {
			w.t.Errorf("the next pod does not run: %s", w.describe("run2"))
		}
	})
}
