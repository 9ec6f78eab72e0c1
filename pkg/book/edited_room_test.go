package book_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that is requeued keeps its room and its money. Whoever it is given to meanwhile, by an edit of its owner, has
// no claim to the money of the one before, or of that one's sponsors.
func TestAnotherOwnerHasNoClaimToTheMoneyThatWasKept(t *testing.T) {
	tell(t, func(w *world) {
		w.requeued(0)
		w.amend("run0", func(s *rqv1.RunSpec) { s.Owner = "org:pauper" })
		w.addNode("n9", "d0")
		w.rounds(10)
		for name, l := range w.Leases {
			if l.Spec.RunRef.Name == "run0" && !l.Status.Closed {
				t.Errorf("Lease %s of %s is paid by %s (%s)", name, l.Spec.Owner, l.Spec.Payer.Budget, l.Spec.Payer.Relation)
			}
		}
	})
}

// An ended pod of a requeued Run whose object somebody keeps does not keep the Run's room: that lapses, and nobody is
// cut beside it.
func TestAnEndedPodThatStaysKeepsNoRoom(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 3)
		s.setBudget("a", "org:a", 24)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("run0", "org:a", 1, 3, 8, 0, checkpointed, patient(5))
		s.work()
		s.during(time.Minute)
		s.submit("run1", "org:b", 1, 1, 8)
		s.work()
		s.Lose(s.on("run0-0"))
		kept := s.pod("run0-1")
		s.hang(kept)
		s.work()
		s.Ends.Set(kept, s.Now.Add(1000*time.Hour))
		s.during(6 * time.Second)
		s.work()
		s.EndPod(kept, "Failed")
		s.work()
		s.submit("run2", "org:b", 1, 1, 8)
		for range 10 {
			s.during(30 * time.Second)
			s.refresh()
			s.work()
		}
		if meta.IsStatusConditionTrue(s.Runs["run0"].Status.Conditions, rqv1.ConditionRoomKept) {
			s.t.Fatalf("run0 keeps its room:\n%s", s.story())
		}
		s.running("run1", "and nothing had to be cut")
		s.running("run2", "on what run0 has given up")
	})
}

// A Run that may be wider than the fleet and that nobody can pay for is not looked at again and again while nothing
// changes.
func TestABoundedRunThatNobodyPaysForRests(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.submitWithSpares("run0", "org:a", 1, 2000, 1, 0, ungrouped, elastic(1, 1))
		for range 5 {
			w.reconcile("run0")
		}
		w.Book.TakeActions()
		for range 5 {
			w.Book.Assess(w.Runs["run0"].UID, w.Now)
			if slices.Contains(w.Book.TakeActions().Reconcile, types.NamespacedName{Namespace: "ns", Name: "run0"}) {
				w.t.Fatalf("run0 asks to be looked at again though nothing has changed")
			}
		}
	})
}
