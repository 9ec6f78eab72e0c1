package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// heldIn counts the GPUs that are held on all nodes.
func (w *world) heldGPUs() (n int64) {
	for name := range w.Nodes {
		n += w.heldOn(name)
	}
	return n
}

// boundSlots returns on which nodes the pods of a Run are that others have made.
func (w *world) boundSlots(run string) map[int]string {
	out := map[int]string{}
	for n, pods := range w.Slots(w.Runs[run].UID) {
		for _, pod := range pods {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				out[n] = pod.Spec.NodeName
			}
		}
	}
	return out
}

// leaves has a pod go for good that somebody else has made.
func (w *world) leaves(run string, n int) {
	uid := w.Runs[run].UID
	w.controllers.less[slot{uid, n}] = true
	for _, pod := range w.Slots(uid)[n] {
		w.DeletePod(pod.UID)
	}
}

// startTheirs has a Run of four pods of a node each start, whose pods others make.
func (w *world) startTheirs(changes ...func(*rqv1.RunSpec)) {
	w.fleet("d0", 5)
	w.setBudget("a", "org:a", 40)
	w.submitWithSpares("run00", "org:a", 1, 4, 8, 0, append([]func(*rqv1.RunSpec){ungrouped, theirs}, changes...)...)
	w.rounds(3)
	w.running("run00", "although all its pods are there")
}

// TestAPlaceIsKeptForAPodForAWhile: a group goes on without a pod that is not made anew, and gives its GPUs and their
// money back (R42); one that comes later all the same is placed.
func TestAPlaceIsKeptForAPodForAWhile(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		w.leaves("run00", 1)
		w.rounds(3)
		if held := w.heldGPUs(); held != 32 {
			t.Errorf("%d GPUs are held, want those of the pod that is to come too", held)
		}
		w.Pass(gangDeadline)
		w.rounds(3)
		if held := w.heldGPUs(); held != 24 {
			t.Errorf("%d GPUs are held, want those of the pods that there are", held)
		}
		if paid := w.Book.Budgets.Usage(); len(paid) != 1 {
			t.Errorf("%v is paid", paid)
		} else {
			for _, gpus := range paid {
				if gpus != 24 {
					t.Errorf("%d GPUs are paid for", gpus)
				}
			}
		}
		w.running("run00", "although its controller makes no more pods")
		delete(w.controllers.less, slot{w.Runs["run00"].UID, 1})
		w.rounds(3)
		if on := w.boundSlots("run00"); len(on) != 4 {
			t.Errorf("its pods are on %v", on)
		}
		w.settle()
		w.checkSettled()
	})
}

// TestPodsThatAreMadeAnewWaitForNobody: of two lost pods one is made anew, and is placed before the other comes (R42),
// whose place is its own meanwhile.
func TestPodsThatAreMadeAnewWaitForNobody(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		before := w.boundSlots("run00")
		w.leaves("run00", 1)
		w.leaves("run00", 2)
		w.rounds(2)
		delete(w.controllers.less, slot{w.Runs["run00"].UID, 2})
		w.rounds(3)
		if on := w.boundSlots("run00"); len(on) != 3 || on[2] != before[2] {
			t.Errorf("its pods are on %v, and were on %v", on, before)
		}
		w.submit("run1", "org:a", 1, 1, 8)
		w.rounds(2)
		delete(w.controllers.less, slot{w.Runs["run00"].UID, 1})
		w.rounds(3)
		if on := w.boundSlots("run00"); len(on) != 4 || on[1] != before[1] {
			t.Errorf("its pods are on %v, and were on %v", on, before)
		}
	})
}

// TestAGroupThatIsNotWholeHoldsNothing: nobody knows whether the pods come that it lacks. What it was promised is
// promised no more.
func TestAGroupThatIsNotWholeHoldsNothing(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 40)
		w.submitWithSpares("run00", "org:a", 1, 4, 8, 0, ungrouped, theirs)
		w.controllers.less[slot{w.Runs["run00"].UID, 3}] = true
		for range 4 {
			w.rounds(3)
			if held := w.heldGPUs(); held != 0 {
				t.Fatalf("%d GPUs are held for a group that lacks a pod", held)
			}
			w.Pass(gangDeadline / 2)
		}
		clear(w.controllers.less)
		w.rounds(3)
		w.running("run00", "although all its pods are there")
	})
}

// TestWhatIsInTheWayOfALateGroupLeaves before all of its pods are made: they are not until some of it runs. The first
// are there.
func TestWhatIsInTheWayOfALateGroupLeaves(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 40)
		w.submitWithSpares("shards", "org:a", 1, 4, 4, 0, ungrouped, opportunistic)
		w.rounds(3)
		if on := len(w.OpenLeases()); on != 4 {
			t.Fatalf("%d shards run", on)
		}
		w.submitWithSpares("run00", "org:a", 1, 4, 4, 0, lateFirst)
		for range 10 {
			w.rounds(3)
		}
		w.running("run00", "although only shards are in its way")
	})
}

// TestThePlaceOfAPodThatHasFailedIsKeptForAWhile: it is there for as long as nobody deletes it, and nobody may make
// another. What it held is given back all the same.
func TestThePlaceOfAPodThatHasFailedIsKeptForAWhile(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		w.controllers.less[slot{w.Runs["run00"].UID, 1}] = true
		w.EndPod(w.Slots(w.Runs["run00"].UID)[1][0].UID, corev1.PodFailed)
		w.rounds(3)
		if held := w.heldGPUs(); held != 32 {
			t.Errorf("%d GPUs are held, want those of the pod that is to come too", held)
		}
		w.Pass(gangDeadline)
		w.rounds(3)
		if held := w.heldGPUs(); held != 24 {
			t.Errorf("%d GPUs are held, want those of the pods that run", held)
		}
		if is := w.reasonOf("run00"); is != "PodsNotMade" {
			t.Errorf("it says %s: %s", is, w.Runs["run00"].Status.Message)
		}
		w.running("run00", "although its controller makes no more pods")
		delete(w.controllers.less, slot{w.Runs["run00"].UID, 1})
		w.rounds(3)
		if on := w.boundSlots("run00"); len(on) != 4 {
			t.Errorf("its pods are on %v", on)
		}
		w.settle()
		w.checkSettled()
	})
}

// It is kept by whoever schedules next too.
func TestAPlaceIsKeptForAPodAfterARestart(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		w.setBudget("b", "org:b", 16)
		w.submit("run1", "org:b", 2, 1, 8)
		w.leaves("run00", 1)
		w.rounds(3)
		w.crash()
		w.rounds(3)
		w.waits("run1", "in the place of a lost rank")
		w.makes("run00", 1)
		w.rounds(3)
		w.granted("run00", 32)
		w.waits("run1", "although no node is free")
		w.leaves("run00", 1)
		w.rounds(3)
		w.crash()
		w.rounds(3)
		w.Pass(gangDeadline)
		w.rounds(6)
		w.running("run1", "although nothing is kept any more")
	})
}

// However a pod has gone for good by others' doing, and whether or not somebody has looked since, its place is kept by
// whoever schedules next.
func TestThePlaceOfAPodThatIsGoneIsKeptAfterARestart(t *testing.T) {
	for name, goes := range map[string]func(w *world){
		"while nobody looks": func(w *world) { w.leaves("run00", 1) },
		"by an eviction": func(w *world) {
			uid := w.Runs["run00"].UID
			w.controllers.less[slot{uid, 1}] = true
			pod := w.Slots(uid)[1][0].UID
			w.AtOnce = false
			w.EvictByAPI(pod)
			w.looked("run00")
			w.DeletePod(pod)
			w.rounds(3)
			w.expectLedger("run00", map[string]int{"Evicted": 1, "open Start Active": 3})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.startTheirs()
				before := w.boundSlots("run00")[1]
				w.setBudget("b", "org:b", 16)
				w.submit("run1", "org:b", 2, 1, 8)
				w.rounds(3)
				goes(w)
				w.crash()
				w.rounds(3)
				w.waits("run1", "in the place of a lost rank")
				w.makes("run00", 1)
				w.rounds(3)
				w.granted("run00", 32)
				if on := w.boundSlots("run00")[1]; on != before {
					t.Errorf("it is on %s, and was on %s", on, before)
				}
			})
		})
	}
}

// Nobody keeps what was cut before it was gone.
func TestThePlaceOfAPodThatWasCutIsNotKeptAfterARestart(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		w.activation = w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: "run00"}, Action: rqv1.CutLottery, GPUs: 1})
		w.Book.SetReservation(w.activation)
		for n := range 4 {
			w.leaves("run00", n)
		}
		w.crash()
		w.rounds(3)
		if held := w.heldGPUs(); held != 0 {
			t.Errorf("%d GPUs are held for a Run that was cut", held)
		}
	})
}

// So is that of a pod of our own making which somebody has deleted: its rank goes back.
func TestARankThatIsDeletedGoesBackAfterARestart(t *testing.T) {
	for _, seen := range []bool{true, false} {
		tell(t, func(w *world) {
			w.fleet("d0", 2)
			w.setBudget("a", "org:a", 16)
			w.setBudget("b", "org:b", 8)
			w.submit("run0", "org:a", 1, 2, 8)
			w.rounds(3)
			w.submit("run1", "org:b", 1, 1, 8)
			w.rounds(3)
			before := w.on("run0-1")
			w.DeletePod(w.pod("run0-1"))
			if seen {
				w.looked("run0")
			}
			w.crash()
			w.rounds(6)
			w.waits("run1", "in the place of a lost rank")
			if on := w.on("run0-1"); on != before {
				t.Errorf("it is on %q, and was on %s", on, before)
			}
		})
	}
}

// It is kept no longer than by one that schedules all the time, however often another takes over.
func TestAPlaceIsKeptNoLongerForRestarts(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		w.setBudget("b", "org:b", 16)
		w.submit("run1", "org:b", 2, 1, 8)
		w.leaves("run00", 1)
		w.rounds(3)
		for range 3 {
			w.crash()
			w.rounds(3)
			w.Pass(gangDeadline * 2 / 3)
		}
		w.rounds(3)
		w.running("run1", "although nothing is to be kept any more")
	})
}
