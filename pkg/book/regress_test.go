package book_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// tell plays a story that needs no chance but for the order in which a process that begins learns things.
func tell(t *testing.T, story func(w *world)) {
	t.Helper()
	plays(t, 10, func(t *rapid.T) { story(newWorld(t)) })
}

// plays plays a story so many times.
func plays(t *testing.T, times int, story func(t *rapid.T)) {
	t.Helper()
	played := 0
	rapid.Check(t, func(t *rapid.T) {
		if played < times {
			story(t)
			played++
		}
	})
}

func (w *world) pod(name string) types.UID {
	for _, uid := range w.SortedPods() {
		if w.Pods[uid].Name == name {
			return uid
		}
	}
	w.t.Fatalf("there is no pod %s", name)
	return ""
}

// place brings a pod as far as it comes in one cycle; one that has not been made is, if its Run is to have it.
func (w *world) place(name string) types.UID {
	if !slices.ContainsFunc(w.SortedPods(), func(uid types.UID) bool { return w.Pods[uid].Name == name }) {
		w.reconcile(name[:strings.LastIndex(name, "-")])
	}
	uid := w.pod(name)
	w.Queue[uid] = true
	w.cycle(uid)
	return uid
}

func TestAGangThatStartsAgainPassesTheBarrierAsAWhole(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.submit("run0", "org:a", 1, 2, 2)
		w.settle()
		for _, uid := range w.SortedPods() {
			w.DeletePod(uid)
		}
		w.reconcile("run0")
		if uid := w.place("run0-0"); w.Binding[uid] != "" {
			w.t.Fatalf("the first pod of the second start is bound alone")
		}
	})
}

// writing has two Runs that may spend so many GPUs want the only node, and the Lease of the first be written. It
// returns that one's pod and the Lease.
func (w *world) writing(gpus int) (types.UID, *rqv1.Lease) {
	w.addNode("n0", "d0")
	w.setBudget("a", "org:a", gpus)
	w.submit("run0", "org:a", 1, 1, 8)
	w.submit("run1", "org:a", 1, 1, 8)
	w.reconcile("run0")
	w.reconcile("run1")
	first := w.place("run0-0")
	lease, err := w.Book.NewLease(first, w.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	return first, lease
}

func TestGPUsStayHeldWhileALeaseIsBeingWritten(t *testing.T) {
	tell(t, func(w *world) {
		first, lease := w.writing(16)
		look, _ := w.Book.Look(book.Objects{Run: w.Runs["run0"], Pods: []*corev1.Pod{w.Pods[first]}})
		if !look.Opening[first] || look.Leased[first] {
			w.t.Fatalf("a pod whose Lease is being written is not looked at as one: %+v", look)
		}
		w.DeletePod(first)
		if second := w.place("run1-0"); w.Binding[second] != "" {
			w.t.Fatalf("the GPUs of a Lease that may be in the ledger are given to another pod")
		}
		if open, gone := w.Book.Unsettled(first); !open || !gone {
			w.t.Fatalf("the book does not know that the outcome is open")
		}
		w.Book.NotWritten(first, types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name})
		if second := w.place("run1-0"); w.Binding[second] == "" {
			w.t.Fatalf("the GPUs are not free although the Lease was not written")
		}
	})
}

// Of a Lease whose pod is gone it may be told that it was written when it is closed.
func TestALeaseThatIsClosedBeforeItIsKnownHoldsNothing(t *testing.T) {
	for _, toldFirst := range []bool{false, true} { // that it is closed, and that its pod is gone after that
		tell(t, func(w *world) {
			first, lease := w.writing(8)
			if !toldFirst {
				w.DeletePod(first)
			}
			ended := metav1.NewMicroTime(w.Now.Add(time.Second))
			lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: rqv1.ClosedDeleted}
			w.Book.SetLease(lease)
			if toldFirst {
				w.DeletePod(first)
			}
			if open, _ := w.Book.Unsettled(first); open {
				w.t.Fatalf("it is open whether a Lease was written that is closed")
			}
			if second := w.place("run1-0"); w.Binding[second] == "" {
				w.t.Fatalf("a Lease that is closed holds its GPUs")
			}
		})
	}
}

func TestALostPodsRoomIsKeptForItsReplacement(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.submit("run0", "org:a", 1, 2, 4)
		w.settle()
		w.submit("run1", "org:a", 1, 1, 4)
		w.settle()
		w.DeletePod(w.pod("run0-1"))
		w.settle()
		if phase := w.Runs["run0"].Status.Phase; phase != rqv1.RunRunning {
			w.t.Fatalf("run0 is %s because a Run that waits took its room", phase)
		}
		w.checkSettled()
	})
}

func TestAGangThatCannotBePlannedKeepsNoRoomFromOthers(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 32)
		w.submit("run0", "org:a", 1, 1, 8)
		w.settle()
		w.submit("run1", "org:a", 1, 2, 4)
		w.submit("run2", "org:a", 1, 1, 8)
		w.settle()
		w.Book.TakeActions()
		w.DeletePod(w.pod("run1-0")) // and it cannot be created again
		w.DeleteRun("run0")
		for _, lease := range w.OpenLeases() {
			w.Book.LeaseLost(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, w.Now)
		}
		woken := false
		for _, pod := range w.Book.TakeActions().Activate {
			woken = woken || pod.Name == "run2-0"
		}
		if !woken {
			w.t.Fatalf("run2 is not woken although it fits")
		}
	})
}

func TestAPlanThatWasNotFollowedEnds(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		w.submit("run0", "org:a", 1, 2, 4)
		w.reconcile("run0")
		if _, refusal := w.Book.Place(w.pod("run0-0"), w.Now); refusal != nil {
			w.t.Fatal(refusal)
		}
		w.Pass(2 * gangDeadline)
		w.settle()
		if phase := w.Runs["run0"].Status.Phase; phase != rqv1.RunRunning {
			w.t.Fatalf("run0 is %s after a cycle that ended between plan and barrier", phase)
		}
	})
}

func TestTheMoneyOfADeletedNamespaceIsFreeAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 8)
		w.submit("run0", "org:a", 1, 1, 8)
		w.settle()
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		w.Book.TakeActions()
		w.DeletePod(w.pod("run0-0")) // the namespace's controller deletes pods, Leases and Runs as it likes
		for _, lease := range w.OpenLeases() {
			w.ForgetLease(lease.Name)
			w.Book.LeaseLost(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, w.Now)
		}
		w.DeleteRun("run0")
		if !slices.ContainsFunc(w.Book.TakeActions().Reconcile, func(run types.NamespacedName) bool {
			return run.Name == "run1"
		}) {
			w.t.Fatalf("run1 is not looked at although its owner can pay")
		}
		w.settle()
		w.running("run1", "although its owner can pay")
	})
}

func TestARunThatNeverFitsKeepsNoRoomFromOthers(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 1000)
		w.submit("run0", "org:a", 10, 1, 8)
		w.Pass(time.Second)
		w.addNode("n1", "d0")
		notReady := w.Nodes["n1"].DeepCopy()
		notReady.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		w.Book.SetNode(notReady)
		w.submit("run1", "org:a", 2, 1, 8)
		w.settle()
		w.Book.TakeActions()
		w.addNode("n1", "d0") // it is ready now
		woken := false
		for _, pod := range w.Book.TakeActions().Activate {
			woken = woken || pod.Name == "run1-0"
		}
		if !woken {
			w.t.Fatalf("run1 is not woken although it fits")
		}
	})
}

// A rank whose pods come and go before its Run has said anything is numbered on, by whoever leads: nothing but a closed
// Lease tells that it has had a pod.
func TestARankIsNumberedOnBeforeItsRunSaysAnything(t *testing.T) {
	tellStorm(t, func(w *storm) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 2)
		w.submit("run0", "org:a", 1, 1, 2)
		w.round()
		for _, epoch := range []string{"0", "1", "1"} { // the second has no Lease
			pod := w.pod("run0-0")
			if got := w.Pods[pod].Labels[rqv1.LabelEpoch]; got != epoch || len(w.Runs["run0"].Status.Conditions) > 0 {
				w.t.Fatalf("the epoch is %s, want %s, of %+v", got, epoch, w.Runs["run0"].Status)
			}
			w.DeletePod(pod)
			w.restart()
			w.reconcile("run0")
		}
	})
}
