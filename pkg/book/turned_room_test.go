package book_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// cleared has two Runs be cut for run1, which needs their nodes n0 and n1, and leave, and a small Run wait beside it.
func (s *storm) cleared() {
	s.contested(2, 0)
	s.during(1)
	s.submit("small", "org:b", 1, 1, 8)
	s.work()
	s.due()
	s.decided("run1-r0")
	for _, name := range []string{"on-n0", "on-n1"} {
		s.reconcile(name)
	}
	s.during(noticePeriod)
	for range 3 {
		for _, name := range []string{"on-n0", "on-n1"} {
			s.reconcile(name)
		}
	}
	s.Act()
	if p := s.Book.Prospect(s.Runs["run1"].UID); p.Leaving > 0 || s.Book.Assigned(s.pod("run1-0")) == "" {
		s.t.Fatalf("run1 still waits for %d pods:\n%s", p.Leaving, s.story())
	}
}

// What others were cut for stays the gang's own when one node turns it down, until it has been planned again.
func TestWhatWasFreedIsKeptWhenANodeTurnsTheGangDown(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.cleared()
		bad := s.Book.Assigned(s.pod("run1-0"))
		s.Rejects[bad] = "Insufficient cpu"
		s.Queue = map[types.UID]bool{}
		s.place("run1-0")
		s.place("small-0") // the same node turns it down
		s.place("small-0")
		if on := s.Book.Assigned(s.pod("small-0")); on != "" && on != bad {
			s.t.Fatalf("small has %s, which was freed for run1", on)
		}
		s.addNode("n9", "d0")
		s.work()
		s.running("run1", "on what was freed for it and the node that is free")
		if state := s.Reservations["run1-r0"].Status.State; state != rqv1.ReservationReleased {
			s.t.Fatalf("the Reservation is %s", state)
		}
	})
}

// When it does not fit around that node, what was kept is anybody's at once.
func TestWhatWasFreedIsGivenUpWhenTheGangCannotStart(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.cleared()
		s.Rejects[s.Book.Assigned(s.pod("run1-0"))] = "Insufficient cpu"
		s.work()
		if r := s.Reservations["run1-r0"]; r.Status.Cause != rqv1.CanceledNodesRejected {
			s.t.Fatalf("the Reservation is %s for %q", r.Status.State, r.Status.Cause)
		}
		if free := s.idleNodes(); len(free) > 1 {
			s.t.Fatalf("%v are kept for nobody:\n%s", free, s.story())
		}
	})
}

// Two Runs that one Budget can pay for one at a time, and that need a node which turns both down, do not wake each
// other for ever with what they are given and give back, nor with the shards that make room for each try.
func TestWhatIsGivenBackPardonsNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStorm(newWorld(t))
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 64)
		for i, name := range []string{"n0", "n1", "n2"} {
			s.addNode(name, fmt.Sprintf("d%d", i/2))
		}
		s.submitWithSpares("beside", "org:b", 1, 1, rapid.SampledFrom([]int{2, 4}).Draw(t, "beside"), 0, patient(90))
		s.work()
		s.submitWithSpares("shards", "org:b", 1, rapid.IntRange(1, 8).Draw(t, "shards"), 2, 0, opportunistic)
		s.work()
		s.Rejects["n0"] = "Insufficient cpu"
		s.DeleteRun("beside")
		s.submitWithSpares("one", "org:a", 1, rapid.IntRange(4, 8).Draw(t, "one"), 2, 0, ungrouped)
		s.submitWithSpares("two", "org:a", 1, rapid.IntRange(2, 4).Draw(t, "two"), 4, 0, ungrouped)
		s.work() // fails if that does not come to an end
	})
}

// Nor do two Runs each of whose pods want a node to themselves: that the first pod of one has come to the barrier and
// has left is nothing new to the other, which was turned down before.
func TestWhoComesAndGoesPardonsNobody(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.setBudget("a", "org:a", 64)
		s.addNode("n0", "d0")
		s.submitWithSpares("one", "org:a", 1, 2, 4, 0, apart)
		s.submitWithSpares("two", "org:a", 1, 2, 4, 0, apart)
		s.work() // fails if that does not come to an end
	})
}
