package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// tries has a Run be looked at and its pods be tried until they come no further.
func (w *world) tries(run string) {
	for range 3 {
		w.reconcile(run)
		w.Act()
		for _, uid := range w.SortedPods() {
			if strings.HasPrefix(w.Pods[uid].Name, run+"-") {
				w.Queue[uid] = true
				w.cycle(uid)
			}
		}
	}
}

// A lost rank finds no room. What is paid for it stays set aside: another Run of its owner, which would have room, does
// not have it, and the rank is paid for as before once there is a node.
func TestTheMoneyOfALostRankIsKeptWhileItHasNoRoom(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 16)
		w.submit("run0", "org:a", 1, 2, 8)
		w.settle()
		w.running("run0", "although it fits")
		w.addSmall("small", 2)
		w.submit("run1", "org:a", 1, 1, 2)
		w.settle()
		w.Pass(time.Minute)
		w.Lose(w.on("run0-0"))
		w.reconcile("run0")
		w.place("run0-0")
		w.tries("run1")
		w.check()
		w.addNode("n9", "d0")
		w.place("run0-0")
		w.rounds(3)
		w.check()
		w.settle()
		w.check()
		w.running("run0", "although there is a node")
	})
}

// Nor is it given to others when the process is killed between the loss and the replacement.
func TestTheMoneyOfALostRankIsKeptThroughARestart(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 16)
		w.submit("run0", "org:a", 1, 2, 8)
		w.settle()
		w.running("run0", "although it fits")
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		w.Pass(time.Minute)
		w.Lose(w.on("run0-0"))
		w.dies(rapid.IntRange(0, 14).Draw(w.t, "writes")-1, sim.ByControllers)
		crash := rapid.IntRange(0, 6).Draw(w.t, "rounds")
		for i := range 12 {
			if i == crash {
				w.crash()
				w.tries("run1")
				w.check()
			}
			w.rounds(1)
			w.check()
		}
		w.settle()
		w.check()
		w.running("run0", "although there is a node")
	})
}

// A rank is lost before its Run is known to run. Nothing is set aside for it then, so that its replacement is paid for
// as any pod: not beyond what the Budget allows.
func TestARankThatIsLostBeforeItsRunRunsIsPaidForAnew(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 5)
		w.setBudget("a", "org:a", 16)
		w.submit("run0", "org:a", 1, 2, 8)
		w.round()
		w.round()
		w.waits("run0", "although nobody has looked at it since it was bound")
		w.submit("run1", "org:a", 1, 1, 8)
		w.EndPod(w.pod("run0-0"), corev1.PodFailed)
		w.Lose(w.on("run0-0"), w.on("run0-1"))
		for range 12 {
			w.rounds(1)
			w.check()
		}
		w.settle()
		w.check()
	})
}

// Two ranks are lost, and one has a spare. Who paid for it pays for it there, so that the other is not paid for by the
// same money, although that comes first.
func TestARankInASparesPlaceIsPaidForBeforeOthersArePlanned(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 16)
		b := w.Budgets["a"].DeepCopy()
		ends := metav1.NewTime(w.Now.Add(time.Hour)) // that is what pays first
		b.Spec.Envelopes = append(b.Spec.Envelopes, rqv1.Envelope{Name: "f", Flavor: flavor, Concurrency: 2, End: &ends})
		b.Generation = 1000
		w.SetBudget(b)
		w.submitWithSpares("run0", "org:a", 1, 2, 2, 1)
		w.settle()
		w.running("run0", "although it fits")
		if w.on("run0-0") != w.on("run0-1") || w.on("run0-0") == w.on("run0-s0") {
			w.t.Fatalf("the ranks are on %s and %s, the spare on %s", w.on("run0-0"), w.on("run0-1"), w.on("run0-s0"))
		}
		w.Lose(w.on("run0-0"))
		w.rounds(6)
		w.running("run0", "although there is room for both")
	})
}

// A Run is requeued twice within a second, so that a process which begins then finds more old Leases than it has ranks.
// What was kept for it and has its place is not paid for twice.
func TestOldLeasesOfTwoStartsAreNotPaidForTwice(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 30)
		w.submitWithSpares("run0", "org:a", 3, 1, 8, 0, checkpointed)
		w.settle()
		w.running("run0", "although it fits")
		for _, rank := range [...]string{"run0-1", "run0-2"} {
			lost := w.on(rank)
			w.Lose(lost)
			w.turns(8)
			w.waits("run0", "on two nodes")
			if w.Forgive(lost); rank == "run0-2" {
				w.crash()
			}
			w.turns(8)
			w.running("run0", "although its node is there again")
		}
	})
}

// turns lets everybody do their work so many times at one instant, and checks what always holds.
func (w *world) turns(n int) {
	for range n {
		w.round()
		w.check()
	}
}
