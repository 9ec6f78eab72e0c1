package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// rebuffed has somebody be cut in vain for run1, on whose node another rule turns it down. A node of another domain is
// full as well, and is no use to it.
func (s *storm) rebuffed() (refused string) {
	s.addNode("far", "d1")
	s.setBudget("c", "org:c", 8)
	s.submit("on-far", "org:c", 1, 1, 8)
	s.work()
	s.contested(1, 0)
	s.Rejects["n0"], s.Rejects["n1"] = "Insufficient cpu", "Insufficient cpu"
	s.due()
	cut := s.on(s.decided("run1-r0")[0].Run.Name + "-0")
	for range 3 {
		s.work()
		s.during(noticePeriod)
	}
	r := s.Reservations["run1-r0"]
	if r.Status.Cause != rqv1.CanceledNodesRejected || len(r.Status.Cuts) != 1 {
		s.t.Fatalf("the Reservation is %s for %q: %s\n%s", r.Status.State, r.Status.Cause, r.Status.Reason, s.story())
	}
	s.DeleteRun(r.Status.Cuts[0].Run.Name) // it would have others cut for itself
	return cut
}

// change has a node be another.
func (w *world) change(name string, change func(*corev1.Node)) {
	node := w.Nodes[name].DeepCopy()
	change(node)
	w.SetNode(node)
}

// vain lets time go by in which others could be cut for run1, and asserts whether that is in vain, so that they are
// not.
func (s *storm) vain(want bool, after string) {
	for range 3 {
		s.during(reservationLead + activationShield)
		s.refresh()
		s.work()
	}
	refusal := s.Book.Refusal(s.Runs["run1"].UID)
	banned := refusal != nil && strings.Contains(refusal.Message, "no Run is cut for it for some hours")
	if again := s.revealed() > 1; want && !banned || again == want {
		// when it may, it is cut in vain again, and banned again
		s.t.Fatalf("%s others were cut %d times, and run1 is refused for %+v", after, s.revealed(), refusal)
	}
}

// A change of the fleet that does not help a Run for which others were cut in vain has nobody cut for it again: nodes
// that were of no use to it, or are of none any more, and those that come back as they were.
func TestWhatDoesNotHelpEndsNoRebuff(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			refused := s.rebuffed()
			s.vain(true, "at first")
			if restarts {
				s.restart()
				s.work()
			}
			s.change("far", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			s.vain(true, "after a cordon elsewhere")
			s.change("far", func(n *corev1.Node) { n.Spec.Unschedulable = false })
			s.vain(true, "after the end of that cordon")
			s.change("far", func(n *corev1.Node) { n.Labels["team"] = "x" })
			s.vain(true, "after a label elsewhere")
			s.Book.HoldBack(map[string]bool{"far": true})
			s.Book.HoldBack(nil)
			s.vain(true, "after a node was held back")
			s.change(refused, func(n *corev1.Node) { n.Labels["team"] = "x" })
			s.vain(false, "after a change of the node that turned it down")
		})
	}
}

// Capacity that comes ends it.
func TestANewNodeEndsARebuff(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.rebuffed()
		s.addNode("n9", "d0")
		s.foreign("other", "n9", 8)
		s.vain(false, "after a node has come")
	})
}

// What kept a gang off a node may go without a change of the Node, as other people's pods do: others are cut again
// after a rest, and if that is in vain too, after one twice as long.
func TestARebuffRests(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.rebuffed()
		s.rests(4*time.Hour, 2)
		s.restart()
		s.work()
		s.rests(8*time.Hour, 3)
	})
}

// rests lets time go by and asserts that nobody is cut before a rest is over, and how many activations have cut
// somebody soon after.
func (s *storm) rests(rest time.Duration, then int) {
	s.t.Helper()
	for _, d := range []time.Duration{rest - time.Hour, time.Hour, reservationLead, noticePeriod, noticePeriod,
		noticePeriod} {
		before := s.revealed()
		s.during(d)
		s.refresh()
		s.work()
		if d == rest-time.Hour && s.revealed() != before {
			s.t.Fatalf("others are cut again within %s", d)
		}
	}
	s.turn(nil)
	s.during(noticePeriod)
	s.work()
	if got := s.revealed(); got < then {
		s.t.Fatalf("%s after cuts in vain others have been cut %d times, want %d:\n%s", rest, got, then, s.story())
	}
}

// A pod that hangs hides nothing: when the other nodes turn the gang down, both are told, and nobody is cut again in
// vain.
func TestBothReasonsOfAFailedActivationAreTold(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.setBudget("a", "org:a", 64)
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.submit("run0", "org:a", 1, 2, 8)
		s.work()
		s.during(time.Minute)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.due()
		s.decided("run1-r0")
		s.reconcile("run0")
		s.hang(s.pod("run0-0"))
		s.disturb()
		s.Rejects[s.on("run0-1")] = "Insufficient cpu"
		s.during(noticePeriod)
		s.work()
		s.during(overstay)
		for range 3 {
			s.work()
			s.during(time.Second)
		}
		r := s.Reservations["run1-r0"]
		if r.Status.Cause != rqv1.CanceledNodesRejected || !strings.Contains(r.Status.Reason, "Insufficient cpu") ||
			!strings.Contains(r.Status.Reason, "is still there") {
			s.t.Fatalf("the Reservation is %s for %q: %s\n%s", r.Status.State, r.Status.Cause, r.Status.Reason, s.story())
		}
		s.vain(true, "after both")
	})
}
