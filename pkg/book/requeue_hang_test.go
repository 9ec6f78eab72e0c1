package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// requeuedSlowly has a Run of three pods requeued because of a node's loss, whose other pods take their time to end,
// and a younger Run wait for a node.
func (s *storm) requeuedSlowly() {
	for _, name := range []string{"n0", "n1", "n2"} {
		s.addNode(name, "d0")
	}
	s.setBudget("a", "org:a", 24)
	s.setBudget("b", "org:b", 64)
	s.submitWithSpares("run0", "org:a", 1, 3, 8, 0, checkpointed, patient(20))
	s.work()
	s.during(time.Minute)
	s.submit("run1", "org:b", 1, 1, 8)
	s.work()
	s.Lose(s.on("run0-0"))
	s.disturb()
	s.work()
	if run := s.Runs["run0"]; run.Status.Phase != rqv1.RunPending || s.Ends.Len() != 2 {
		s.t.Fatalf("run0 is %s and %d of its pods end:\n%s", run.Status.Phase, s.Ends.Len(), s.story())
	}
}

// An old pod that never ends does not keep the room of the others for ever: they are kept until the deadline, and then
// anybody's.
func TestAPodThatHangsKeepsNoRoomForARequeuedRun(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.requeuedSlowly()
		s.hang(s.pod("run0-1"))
		for range 10 {
			s.during(10 * time.Second)
			s.work()
		}
		if s.Now.Sub(s.disturbed) < 20*time.Second+overstay+gangDeadline {
			s.during(20 * time.Second)
			s.work()
		}
		s.running("run1", "although the time of the room has passed, and all that is left is a pod that hangs")
	})
}

// While the old pods still end, whoever needs the room has a date by when it is free.
func TestTheRoomOfARequeuedRunIsKnownToComeFree(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.requeuedSlowly()
		s.refresh()
		want := s.Now.Add(20 * time.Second).Add(gangDeadline)
		p := s.Book.Prospect(s.Runs["run1"].UID).Promise
		if p == nil || p.Cuts || p.At.Before(want) || p.At.After(want.Add(10*time.Second)) {
			s.t.Fatalf("run1 is promised %+v, and the room is kept until %s at most", p, want)
		}
	})
}
