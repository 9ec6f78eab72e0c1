package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// The only node that there is turns the only pod of a group out, whose controller makes another. A rank does not go on
// where it was turned out; its Run waits to start again, and that is where it does.
func TestAGroupThatWasTurnedOutStartsAgain(t *testing.T) {
	for done := range 2 {
		tell(t, func(w *world) {
			w.fleet("d0", 1)
			w.setBudget("a", "org:a", 8)
			w.submitWithSpares("run00", "org:a", 1, 1+done, 2, 0, ungrouped, theirs)
			w.rounds(3)
			w.running("run00", "although its pods are there")
			for i, pod := range w.PodsOf("run00") {
				if i < done {
					w.EndPod(pod.UID, corev1.PodSucceeded)
				} else {
					w.Evict(pod.UID, "NodeShutdown")
				}
			}
			w.settle()
			w.checkSettled()
			w.running("run00", "although its node is idle")
		})
	}
}

// Of a group whose pods have no ranks of their own one is done and another is turned out. The one that is made for it
// takes the rank that lacks a pod, not that of the one which is done: the group would wait for another for ever.
func TestAPodTakesTheRankThatLacksOne(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 32)
		w.submitWithSpares("run0", "org:a", 1, 3, 8, 0, ungrouped, theirs)
		w.rounds(3)
		w.running("run0", "although its pods are there")
		for _, pod := range w.PodsOf("run0") {
			switch pod.Labels[rqv1.LabelIndex] {
			case "0":
				w.EndPod(pod.UID, corev1.PodSucceeded)
			case "2":
				w.Evict(pod.UID, "NodeShutdown")
			}
		}
		w.rounds(5)
		phases := map[string]corev1.PodPhase{}
		for _, pod := range w.PodsOf("run0") {
			phases[pod.Labels[rqv1.LabelIndex]] = pod.Status.Phase
		}
		want := map[string]corev1.PodPhase{"0": corev1.PodSucceeded, "1": corev1.PodRunning, "2": corev1.PodRunning}
		if diff := cmp.Diff(want, phases); diff != "" {
			w.t.Fatalf("its ranks are (-want +is):\n%s", diff)
		}
	})
}

// A group of which a pod is done is drawn for another Run. Its controller makes the others anew, and these are all that
// it starts again with.
func TestAGroupThatIsDrawnStartsAgainWithoutWhatIsDone(t *testing.T) {
	for _, name := range []string{"run0", "run00"} { // in one of them pods have no ranks of their own
		tell(t, func(w *world) {
			w.fleet("d0", 3)
			w.setBudget("a", "org:a", 32)
			w.submitWithSpares(name, "org:a", 1, 3, 8, 0, ungrouped, theirs)
			w.rounds(3)
			w.running(name, "although its pods are there")
			w.EndPod(w.PodsOf(name)[1].UID, corev1.PodSucceeded)
			w.rounds(2)
			w.activation = w.activating(rqv1.Cut{Run: rqv1.NamespacedName{Name: name}, Action: rqv1.CutLottery, GPUs: 1})
			w.Book.SetReservation(w.activation)
			w.rounds(5)
			drawn := 0
			for _, l := range w.Leases {
				if l.Status.ClosureReason == rqv1.ClosedRandomPreempt {
					drawn++
				}
			}
			if drawn != 2 {
				w.t.Fatalf("%d Leases are closed for it, want those of the two pods that ran", drawn)
			}
			w.Book.DeleteReservation(w.activation)
			w.activation = nil
			w.settle()
			w.running(name, "although all that is left of it fits")
			w.checkSettled()
		})
	}
}

// A group waits again and lacks a pod that does not come: shards do not stay away for it.
func TestShardsDoNotWaitForAGroupThatLacksPods(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 1)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run00", "org:a", 1, 2, 4, 0, ungrouped, theirs)
		s.work()
		s.running("run00", "although its pods are there")
		s.leaves("run00", 0)
		node := s.on(s.PodsOf("run00")[0].Name)
		s.cordons(node, true)
		s.Evict(s.PodsOf("run00")[0].UID, "NodeShutdown")
		s.work()
		s.waits("run00", "and lacks a pod")
		s.cordons(node, false)
		s.submitWithSpares("run1", "org:a", 1, 1, 4, 0, ungrouped, opportunistic)
		s.work()
		s.running("run1", "although GPUs are idle")
	})
}

// All pods of a group die, its spares too, and nobody sees for so long what becomes of them that nothing is kept for
// its ranks. Its spares come again first, elsewhere: the ranks of a group lie in one domain all the same.
func TestRanksThatComeAfterTheirSparesLieInOneDomain(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 1)
		s.fleet("d1", 1)
		s.setBudget("b", "org:b", 12)
		s.submitWithSpares("run0", "org:b", 2, 2, 2, 1, theirs)
		s.work()
		s.running("run0", "although its pods are there")
		for _, uid := range s.beganPods() {
			s.EndPod(uid, corev1.PodFailed)
		}
		for range 2 {
			s.unseen(s.during)
		}
		for range 3 {
			s.work()
			s.during(time.Second)
		}
	})
}

// A node turns a pod of a group away once, or ends it, and nothing else is idle, for which a younger Run waits. The pod
// that its controller makes next has the place: the group goes on, and the other pod with it.
func TestAPodThatWasTurnedAwayOnceGoesBack(t *testing.T) {
	for _, sign := range []string{"UnexpectedAdmissionError", "NodeShutdown", "Evicted"} {
		tell(t, func(w *world) {
			w.fleet("d0", 2)
			w.setBudget("a", "org:a", 16)
			w.setBudget("b", "org:b", 8)
			w.submitWithSpares("run00", "org:a", 1, 2, 8, 0, ungrouped, theirs)
			w.rounds(6)
			w.running("run00", "although its pods are there")
			w.Pass(time.Hour)
			w.submit("young", "org:b", 1, 1, 8)
			w.rounds(3)
			var stays types.UID
			for i, pod := range w.PodsOf("run00") {
				if i == 0 {
					stays = pod.UID
				} else {
					w.Evict(pod.UID, sign)
				}
			}
			w.rounds(12)
			w.running("run00", "although its node is there: "+sign)
			if w.Pods[stays] == nil {
				w.t.Fatalf("%s: the other pod has gone as well", sign)
			}
			w.settle()
			w.checkSettled()
		})
	}
}
