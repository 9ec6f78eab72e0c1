package book_test

import "testing"

// Others' pods lose a node with all of their groups. Each group is planned by itself, and there is no room for all of
// the spares that are to stand by again: all ranks are placed all the same.
func TestASpareWithoutRoomDoesNotKeepOtherGroupsBack(t *testing.T) {
	for _, asks := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			s.asks(asks)
			s.fleet("d0", 2)
			s.setBudget("a", "org:a", 12)
			s.submitWithSpares("run0", "org:a", 3, 1, 2, 1, theirs)
			s.work()
			s.running("run0", "although its pods are there")
			s.Lose(s.PodsOf("run0")[0].Spec.NodeName)
			for range 3 {
				s.work()
				s.during(gangDeadline / 2)
			}
			s.work()
			if run := s.Runs["run0"]; run.Status.Ready != 3 {
				s.t.Fatalf("%d of 3 ranks are ready: %s\n%s", run.Status.Ready, run.Status.Message, s.describe("run0"))
			}
		})
	}
}
