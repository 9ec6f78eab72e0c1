package book_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// startsTight has a group of three pods of a node each start, for which its owner's money is just enough, and lose one
// of them for so long that nothing is kept for it any more. Two nodes are free.
func (w *world) startsTight(changes ...func(*rqv1.RunSpec)) {
	w.tight(3, 0, changes...)
	w.losesForGood(1)
	w.running("run00", "although its controller makes no more pods")
}

// tight has a group of so many pods and spares of a node each, three in all, start on a fleet of five nodes, for which
// its owner's money is just enough.
func (w *world) tight(pods, spares int, changes ...func(*rqv1.RunSpec)) {
	w.fleet("d0", 5)
	w.setBudget("a", "org:a", 24)
	changes = append([]func(*rqv1.RunSpec){ungrouped, theirs}, changes...)
	w.submitWithSpares("run00", "org:a", 1, pods, 8, spares, changes...)
	w.rounds(3)
	w.running("run00", "although all its pods are there")
}

// losesForGood has a pod of the group be gone for so long that nothing is kept for it any more.
func (w *world) losesForGood(n int) {
	w.leaves("run00", n)
	w.rounds(3)
	w.Pass(gangDeadline)
	w.rounds(3)
}

// othersTake has another Run get money of a pod's that has been given up.
func (w *world) othersTake() {
	w.submit("run1", "org:a", 1, 1, 8)
	w.rounds(3)
	w.running("run1", "although the money of a lost rank has been given up")
}

// makes has the pod be made at last that somebody else has not made.
func (w *world) makes(run string, n int) {
	delete(w.controllers.less, slot{w.Runs[run].UID, n})
}

// So is what is given up for one whose last pod has failed, and is still there.
func TestWhatWasGivenUpForARankThatHasFailedIsNotChargedByWhoeverComesNext(t *testing.T) {
	tell(t, func(w *world) {
		w.tight(3, 0, checkpointed)
		uid := w.Runs["run00"].UID
		w.controllers.less[slot{uid, 1}] = true
		w.Rejects[w.boundSlots("run00")[1]] = "others are to go elsewhere"
		for _, pod := range w.Slots(uid)[1] {
			w.EndPod(pod.UID, corev1.PodFailed)
		}
		w.rounds(3)
		w.Pass(gangDeadline)
		w.rounds(3)
		w.othersTake()
		clear(w.Rejects)
		w.crash()
		w.check()
		w.rounds(3)
		w.running("run00", "although it only lacks a rank that has been given up")
	})
}

// What is given up for a rank whose pod is not made is somebody else's, also for a process that begins later and reads
// the rank's last Lease.
func TestWhatWasGivenUpForARankIsNotChargedByWhoeverComesNext(t *testing.T) {
	tell(t, func(w *world) {
		w.startsTight()
		w.othersTake()
		w.crash()
		w.check()
		w.rounds(3)
		w.running("run00", "although it only lacks a rank that has been given up")
		w.makes("run00", 1)
		w.rounds(3)
		w.crash()
		w.rounds(3)
		if on := w.boundSlots("run00"); len(on) != 2 {
			t.Fatalf("its pods are on %v, and there is no money", on)
		}
		w.running("run00", "although only a late pod waits")
	})
}

// A pod that is made for such a rank at last is paid for by whoever can by then. Until somebody can it waits, and the
// others run.
func TestALatePodIsPaidForByWhoeverCan(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		tell(t, func(w *world) {
			w.startsTight()
			w.othersTake()
			before := w.beganPods()
			w.makes("run00", 1)
			for range 3 {
				w.rounds(3)
				w.Pass(gangDeadline)
				if crashes {
					w.crash()
				}
			}
			if on := w.boundSlots("run00"); len(on) != 2 {
				t.Fatalf("its pods are on %v, and there is no money", on)
			}
			w.running("run00", "although only a late pod waits")
			w.running("run1", "although it was paid for first")
			w.unmoved(before)
			w.DeleteRun("run1")
			w.rounds(4)
			if on := w.boundSlots("run00"); len(on) != 3 {
				t.Fatalf("its pods are on %v, and there is money", on)
			}
			if run := w.Runs["run00"]; len(run.Status.Forgone) > 0 {
				t.Errorf("ranks are given up that run: %v", run.Status.Forgone)
			}
			w.settle()
			w.checkSettled()
		})
	}
}

// While a late pod waits another rank is lost: its money and its place are kept for it as ever, and it does not wait
// for the late one.
func TestALostRankDoesNotWaitForALatePod(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		tell(t, func(w *world) {
			w.startsTight()
			w.submit("run1", "org:a", 1, 1, 8)
			w.rounds(3)
			w.makes("run00", 1)
			w.rounds(3)
			if crashes {
				w.crash()
			}
			before := w.boundSlots("run00")
			w.leaves("run00", 2)
			w.submit("run2", "org:a", 1, 1, 8)
			w.rounds(3)
			w.makes("run00", 2)
			w.rounds(4)
			if on := w.boundSlots("run00"); len(on) != 2 || on[2] != before[2] {
				t.Fatalf("its pods are on %v, and were on %v: %s", on, before, w.Runs["run00"].Status.Message)
			}
			w.running("run00", "although only a late pod waits")
			w.waits("run2", "for money that is kept")
		})
	}
}

// A pod that comes as its place is given up, and gets the money that is still kept for it before that is said, is not
// late: nothing is said of it, and what it has is kept for its next pod too.
func TestAPodThatComesJustInTimeIsNotLate(t *testing.T) {
	tell(t, func(w *world) {
		w.tight(3, 0)
		w.leaves("run00", 1)
		w.rounds(3)
		w.Hang()
		w.makes("run00", 1)
		w.Make(sim.Foreign{Run: w.Runs["run00"], Slot: 1})
		w.looked("run00")
		w.Pass(gangDeadline)
		w.Book.Advance(w.Now)
		w.CatchUp()
		w.Act()
		for _, uid := range w.SortedPods() {
			w.cycle(uid)
		}
		for _, uid := range w.Bindings() {
			w.Bind(uid, sim.Written)
		}
		if on := w.boundSlots("run00"); len(on) != 3 {
			t.Fatalf("its pods are on %v", on)
		}
		w.looked("run00")
		if run := w.Runs["run00"]; len(run.Status.Forgone) > 0 {
			t.Fatalf("ranks are given up that run: %v", run.Status.Forgone)
		}
		w.rounds(3)
		w.leaves("run00", 1)
		w.submit("run1", "org:a", 1, 1, 8)
		w.rounds(3)
		w.waits("run1", "for money that is kept")
	})
}

// Late pods are placed one by one: there is money for one of two.
func TestLatePodsAreAddedOneByOne(t *testing.T) {
	tell(t, func(w *world) {
		w.startsTight()
		w.losesForGood(2)
		w.othersTake()
		w.makes("run00", 1)
		w.makes("run00", 2)
		w.rounds(5)
		if on := w.boundSlots("run00"); len(on) != 2 {
			t.Fatalf("its pods are on %v, and there is money for two: %s", on, w.Runs["run00"].Status.Message)
		}
		want := "runs with 2 of 3 pods: nothing was kept for the others, and those that " +
			"there are wait: "
		if message := w.Runs["run00"].Status.Message; !strings.HasPrefix(message, want) {
			t.Errorf("it says: %s", message)
		}
		w.DeleteRun("run1")
		w.settle()
		w.running("run00", "although there is money for all of it")
		w.checkSettled()
	})
}

// A late pod does not take the place of a spare, which was paid for by others than the rank was.
func TestALatePodTakesNoSparesPlace(t *testing.T) {
	tell(t, func(w *world) {
		w.tight(2, 1)
		spare := w.sparesOn("run00")
		w.losesForGood(1)
		w.othersTake()
		w.makes("run00", 1)
		w.rounds(4)
		if on := w.boundSlots("run00"); len(on) != 1 || !slices.Equal(w.sparesOn("run00"), spare) {
			t.Fatalf("its pods are on %v, its spare is on %v: %s", on, w.sparesOn("run00"), w.Runs["run00"].Status.Message)
		}
		w.DeleteRun("run1")
		w.settle()
		w.checkSettled()
		w.running("run00", "although there is money for all of it")
	})
}

// unmoved asserts that pods run that did.
func (w *world) unmoved(pods []types.UID) {
	for _, uid := range pods {
		if pod := w.Pods[uid]; pod == nil || pod.DeletionTimestamp != nil {
			w.t.Fatalf("pod %s is gone", uid)
		}
	}
}

// Money that is kept for the first of an owner's line keeps no late pod from its group: the group does not go on
// without it, and so would not give back what the first waits for.
func TestALatePodDoesNotWaitForWhoWaitsForItsGroup(t *testing.T) {
	tell(t, func(w *world) {
		w.startsTight()
		w.submit("large", "org:a", 1, 3, 8)
		w.rounds(3)
		w.Pass(reservationLead)
		w.rounds(1)
		w.Book.Settle(w.Now)
		if kept := w.Book.Keeps(); !slices.Equal(kept, []string{"large"}) {
			t.Fatalf("money is kept for %v", kept)
		}
		w.makes("run00", 1)
		w.rounds(4)
		if on := w.boundSlots("run00"); len(on) != 3 {
			t.Fatalf("its pods are on %v, and there is money: %s", on, w.Runs["run00"].Status.Message)
		}
		w.waits("large", "although a group has the money")
		w.DeleteRun("run00")
		w.rounds(6)
		w.running("large", "although the group has gone")
	})
}
