package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// lossesWithin is for how long a process that begins lets others wait for ranks that were lost.
const lossesWithin = 20 * time.Second

// endsWithin is for how long it lets them wait for Leases that are about to be closed.
const endsWithin = 2 * time.Second

// A process that begins beside a Run with a lost rank gives nobody else GPUs until that has a place. If nobody decides
// about it, as when the API server refuses all that is written for that Run, the others wait no longer than their time.
func TestAnUndecidedLossHoldsOthersBackForAWhile(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 2, 8)
		w.settle()
		w.running("run0", "on a fleet that is free")
		w.submit("run1", "org:a", 1, 1, 8)
		w.round()
		w.ForgetNode("n1")
		w.addNode("n2", "d1") // where the lost rank cannot go
		w.crash()
		work := func() {
			w.reconcile("run1")
			w.Book.Advance(w.Now)
			w.Act()
			for _, uid := range w.SortedPods() {
				w.cycle(uid)
			}
		}
		for end := w.Now.Add(19 * time.Second); w.Now.Before(end); w.Pass(time.Second) {
			work()
			if node := w.Book.Assigned(w.pod("run1-0")); node != "" {
				w.t.Fatalf("run1 has %s, and nothing was decided about run0", node)
			}
		}
		if next, known := w.Book.Next(w.Now); !known || next.After(w.Now.Add(2*time.Second)) {
			w.t.Fatalf("the book looks again at %s (%v)", next, known)
		}
		w.Pass(2 * time.Second)
		work()
		if w.Book.Assigned(w.pod("run1-0")) != "n2" {
			w.t.Fatal("run1 waits longer than it has to")
		}
	})
}

// What is lost is waited for by those alone who want GPUs of its type, and not when the node turns out to stand.
func TestALossThatIsNoneHoldsNobodyBack(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 1, 8)
		w.settle()
		w.submit("run1", "org:a", 1, 1, 8)
		node := w.Nodes[w.on("run0-0")]
		w.ForgetNode(node.Name)
		w.crash()
		w.SetNode(node)
		for range 3 {
			w.Pass(time.Second)
			w.round()
		}
		w.running("run1", "although no rank is lost")
		if phase := w.Runs["run0"].Status.Phase; phase != rqv1.RunRunning && phase != rqv1.RunFailed {
			w.t.Errorf("run0 is %s", phase)
		}
	})
}

// A process dies after one pod of a gang has its Lease. Whoever goes on gives the room of the others to nobody else,
// whoever is tried first.
func TestAGangThatStartsGoesOnFirst(t *testing.T) {
	for name, changes := range map[string][]func(*rqv1.RunSpec){"own": nil, "theirs": {ungrouped, theirs}} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 3)
				w.setBudget("a", "org:a", 64)
				w.submit("run9", "org:a", 1, 3, 8)
				w.rounds(3)
				w.running("run9", "on a fleet that is free")
				w.submitWithSpares("run0", "org:a", 1, 3, 8, 0, changes...)
				w.rounds(3)
				w.submit("run1", "org:a", 1, 1, 8)
				w.rounds(3)
				for _, pod := range w.PodsOf("run9") {
					w.EndPod(pod.UID, corev1.PodSucceeded)
				}
				for range 5 {
					if len(w.Bindings()) == 0 {
						w.begins()
					}
				}
				w.Bind(w.Bindings()[0], sim.Written)
				w.crash()
				w.Book.Advance(w.Now)
				w.Act()
				w.cycle(w.pod("run1-0"))
				w.settle()
				w.running("run0", "although it had begun to start")
				w.expectLedger("run0", map[string]int{"open Start Active": 3})
				w.waits("run1", "although all is full")
			})
		})
	}
}

// Nor does it give that of the rest of a cohort to anybody else.
func TestACohortOfWhichSomeHaveLeasesGoesOnFirst(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 1)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, ungrouped, elastic(1, 1), func(s *rqv1.RunSpec) {
			s.Malleable.StepGPUs, s.Malleable.MaxTotalGPUs = 16, 24
		})
		w.rounds(3)
		w.running("run0", "on a fleet that is free")
		w.fleet("d1", 2)
		w.desire("run0", 24)
		for range 8 {
			if len(w.Bindings()) < 2 {
				w.begins()
				w.grow()
				w.Pass(time.Second)
			}
		}
		w.Bind(w.Bindings()[0], sim.Written)
		w.submit("run1", "org:a", 1, 1, 8)
		w.begins()
		w.crash()
		w.Book.Advance(w.Now)
		w.Act()
		w.cycle(w.pod("run1-0"))
		w.settle()
		w.granted("run0", 24)
		w.waits("run1", "although all is full")
		w.checkSettled()
	})
}

// begins does all of a round but bind pods.
func (w *world) begins() {
	w.control()
	for _, name := range w.Names() {
		w.reconcile(name)
	}
	w.Book.Advance(w.Now)
	w.Act()
	for _, uid := range w.SortedPods() {
		w.cycle(uid)
	}
}

// A Run that waits for a node which is out of service has been decided about: it may wait for minutes, and a process
// that begins meanwhile keeps nobody else waiting for it.
func TestARankThatWaitsForItsNodeHoldsNobodyBack(t *testing.T) {
	tell(t, func(w *world) {
		w.AtOnce = false
		w.guarded(2, 2, 0)
		uid, node := w.pod("run0-0"), w.on("run0-0")
		w.cordoned(node, true)
		w.EvictByAPI(uid)
		w.rounds(4)
		if message := w.Runs["run0"].Status.Message; !strings.Contains(message, "waited for until") {
			w.t.Fatalf("run0 does not wait for its node: %s", message)
		}
		w.addNode("n2", "d1") // where the lost rank cannot go
		w.crash()
		w.submit("run1", "org:b", 1, 1, 8)
		w.rounds(3)
		w.running("run1", "although nobody else can use its node")
	})
}
