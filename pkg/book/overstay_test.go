package book_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// overstay is how long a pod may be there after its grace period before others are planned around it.
const overstay = 30 * time.Second

// hang has a pod that has been told to go stay for ever.
func (s *storm) hang(uid types.UID) { s.Ends.Set(uid, s.Now.Add(1000*time.Hour)) }

// stuckVictim has a Run of two pods be drawn for another of two, on a fleet of so many nodes, and one of its pods hang.
func (s *storm) stuckVictim(nodes int) {
	for i := range nodes {
		s.addNode("n"+string(rune('0'+i)), "d0")
	}
	s.setBudget("a", "org:a", 128)
	s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, func(r *rqv1.RunSpec) {
		r.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Hour}}
	})
	s.work()
	s.during(time.Second)
	s.submit("run1", "org:a", 1, 2, 8)
	s.work()
	s.due()
	s.work()
	if len(s.Book.CutsOf(s.Runs["run0"].UID)) != 1 {
		s.t.Fatalf("run0 is not cut:\n%s", s.story())
	}
	s.hang(s.pod("run0-0"))
	s.disturb()
}

// An activation whose victim hangs is planned again around it where there is room, and takes what has been freed for
// it; before and after a restart (R37).
func TestAnActivationGoesRoundAStuckVictim(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			s.stuckVictim(2)
			stuck := s.on("run0-0")
			s.during(noticePeriod)
			s.work()
			s.addNode("n8", "d0") // in the same domain, later: nobody wakes run1 for it, which has its places
			s.addNode("n9", "d0")
			s.submit("run2", "org:a", 1, 1, 8)
			s.work()
			s.running("run2", "on a node of its own")
			s.during(overstay - time.Second)
			s.work()
			if p := s.Book.Prospect(s.Runs["run1"].UID); p.Leaving != 1 || len(p.Stuck) > 0 {
				s.t.Fatalf("before the time is up run1 waits for %d pods, and %v are stuck", p.Leaving, p.Stuck)
			}
			if restarts {
				s.during(time.Second)
				s.restart()
			} else {
				s.during(time.Second)
			}
			s.work()
			s.running("run1", "around the pod that hangs")
			for _, pod := range []string{"run1-0", "run1-1"} {
				if s.on(pod) == stuck {
					s.t.Fatalf("%s is on the node on which a pod hangs", pod)
				}
			}
			r := s.Reservations["run1-r0"]
			if r.Status.State != rqv1.ReservationActivating || !strings.Contains(r.Status.Reason, "ns/run0-0 on node "+stuck) {
				s.t.Fatalf("the Reservation is %s: %s", r.Status.State, r.Status.Reason)
			}
			s.Ends.Delete(s.pod("run0-0"))
			s.DeletePod(s.pod("run0-0"))
			s.work()
			if state := s.Reservations["run1-r0"].Status.State; state != rqv1.ReservationReleased {
				s.t.Fatalf("the Reservation is %s once its last victim has left", state)
			}
		})
	}
}

// Where there is no room around the victim that hangs, the activation is over, and the next decision comes at once: it
// is published like any other, and cuts whom it must, not on the node where the pod hangs.
func TestAnActivationIsDecidedAnewAroundAStuckVictim(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("m0", "d0")
		s.addNode("m1", "d0")
		s.setBudget("b", "org:b", 64)
		s.submit("other", "org:b", 1, 2, 8) // it could be cut as well
		s.work()
		s.stuckVictimOf()
		s.during(noticePeriod + overstay)
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.work()
		r0, r1 := s.Reservations["run1-r0"], s.Reservations["run1-r1"]
		if r0.Status.State != rqv1.ReservationCanceled || r0.Status.Cause != rqv1.CanceledVictimStayed {
			s.t.Fatalf("the first Reservation is %s for %q: %s", r0.Status.State, r0.Status.Cause, r0.Status.Reason)
		}
		if r1 == nil || len(r1.Status.Cuts) != 1 || r1.Status.Lottery.Commitment == "" {
			s.t.Fatalf("it is not decided anew: %+v\n%s", r1, s.story())
		}
		s.running("run1", "by the second decision")
		s.checkRecords()
	})
}

// stuckVictimOf has one of two Runs, whichever is drawn, be cut for a third, and its first pod hang.
func (s *storm) stuckVictimOf() {
	s.stuck(func() {
		for i := range 2 {
			s.addNode("n"+string(rune('0'+i)), "d0")
		}
		s.setBudget("a", "org:a", 128)
		s.submit("run0", "org:a", 1, 2, 8)
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 2, 8)
		s.work()
	})
}

// stuck prepares a contest, has it decided, and has the first pod of whoever is drawn hang.
func (s *storm) stuck(prepare func()) {
	prepare()
	s.due()
	s.work()
	cuts := s.Reservations["run1-r0"].Status.Cuts
	if len(cuts) != 1 {
		s.t.Fatalf("the cuts are %v:\n%s", cuts, s.story())
	}
	s.hang(s.pod(cuts[0].Run.Name + "-0"))
	s.disturb()
}

// What has been freed for a Run is nobody else's while it is decided anew.
func TestWhatWasFreedIsKeptWhileItIsDecidedAnew(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("m0", "d0")
		s.addNode("m1", "d0")
		s.setBudget("b", "org:b", 64)
		s.submit("other", "org:b", 1, 2, 8)
		s.work()
		s.stuckVictimOf()
		s.during(noticePeriod)
		s.work()
		s.submit("small", "org:b", 1, 1, 8) // it is in no hurry to wait for what is free
		s.work()
		s.during(overstay)
		s.refresh()
		for range 3 {
			s.reconcile("run1")
			s.Act()
			if s.place("small-0"); s.on("small-0") != "" || s.Book.Assigned(s.pod("small-0")) != "" {
				s.t.Fatalf("small has what was freed for run1:\n%s", s.story())
			}
		}
		s.work()
		if r := s.Reservations["run1-r1"]; r == nil || len(r.Status.Cuts) != 1 || r.Status.Cuts[0].GPUs > 16 {
			s.t.Fatalf("run1 is not decided anew: %+v", r)
		}
	})
}

// A Run that does not come to be decided anew gives up what is kept for it.
func TestWhatIsKeptIsGivenUpInTheEnd(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.stuckVictim(2)
		s.during(noticePeriod + overstay)
		s.work() // there is nobody else who could be cut
		s.submit("small", "org:a", 1, 1, 8)
		s.work()
		if s.on("small-0") != "" {
			s.t.Fatalf("small has what is kept for run1:\n%s", s.story())
		}
		s.during(gangDeadline)
		s.work()
		s.running("small", "in the room that run1 could not use")
	})
}

// It does not matter when the scheduler dies meanwhile: the Run starts, and in the end nothing is left of what hung.
func TestAStuckVictimSurvivesDeathsAtAnyWrite(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.stuckVictim(2)
		s.during(noticePeriod + overstay)
		s.addNode("n9", "d0")
		s.dies(rapid.IntRange(0, 12).Draw(s.t, "writes"), sim.All)
		for range 4 {
			s.step(s.work)
			s.during(time.Second)
		}
		s.Faults.Drop(sim.Crash)
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.work()
		s.running("run1", "around the pod that hangs")
	})
}

// A Run that has its places waits for a shard no longer than for anybody else, and is planned where none hangs.
func TestAStuckShardIsInTheWay(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.sweep("run0", "org:a", 8, 2)
		s.work()
		s.submit("run1", "org:a", 1, 1, 8)
		for range 2 {
			s.reconcile("run1")
			s.Act()
			s.cycle(s.pod("run1-0"))
		}
		s.leave(s.pod("run0-0"), noticePeriod)
		s.hang(s.pod("run0-0"))
		s.work()
		if p := s.Book.Prospect(s.Runs["run1"].UID); p.Leaving == 0 {
			s.t.Fatalf("run1 does not wait for the shard:\n%s", s.story())
		}
		s.addNode("n9", "d0")
		s.during(noticePeriod + overstay)
		s.work()
		s.during(noticePeriod) // for shards that have gone there
		s.work()
		s.running("run1", "where no shard hangs")
	})
}

// A Run that runs and has lost a rank does not wait for ever either for a shard that hangs where the rank is to go.
func TestAStuckShardIsInTheWayOfALostRank(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, name := range []string{"n0", "n1"} {
			s.addNode(name, "d0")
		}
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.sweep("run1", "org:a", 8, 2)
		s.work()
		s.Lose(s.on("run0-0"))
		for range 4 {
			s.reconcile("run0")
			s.Act()
			for _, uid := range s.SortedPods() {
				s.cycle(uid)
			}
		}
		for uid, pod := range s.Pods {
			if pod.Labels[rqv1.LabelRun] == "run1" && pod.Spec.NodeName != "" {
				s.leave(uid, noticePeriod)
				s.hang(uid)
			}
		}
		s.work()
		if p := s.Book.Prospect(s.Runs["run0"].UID); p.Leaving == 0 {
			s.t.Fatalf("run0 does not wait for shards:\n%s", s.story())
		}
		s.addNode("n9", "d0")
		s.during(noticePeriod + overstay)
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.work()
		if on := s.on("run0-0"); on != "n9" {
			s.t.Fatalf("run0-0 is on %q:\n%s", on, s.describe("run0"))
		}
	})
}

// A Run for which others were cut in vain, because another rule turns its nodes down, has nobody cut again until the
// nodes change; also after a restart.
func TestNobodyIsCutAgainInVain(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, name := range []string{"n0", "n1"} {
			s.addNode(name, "d0")
			s.setBudget("a", "org:a", 64)
			s.submit("on-"+name, "org:a", 1, 1, 8)
			s.work()
		}
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.Rejects["n0"], s.Rejects["n1"] = "Insufficient cpu", "Insufficient cpu"
		s.due()
		s.work()
		s.disturb()
		for range 3 {
			s.during(noticePeriod)
			s.work()
		}
		r := s.Reservations["run1-r0"]
		if r.Status.State != rqv1.ReservationCanceled || r.Status.Cause != rqv1.CanceledNodesRejected ||
			len(r.Status.Cuts) != 1 {
			s.t.Fatalf("the Reservation is %s for %q: %s\n%s", r.Status.State, r.Status.Cause, r.Status.Reason, s.story())
		}
		for range 3 {
			s.during(reservationLead + activationShield)
			s.work()
			if revealed := s.revealed(); revealed != 1 {
				s.t.Fatalf("others were cut %d times\n%s", revealed, s.story())
			}
			if r := s.Book.Refusal(s.Runs["run1"].UID); r == nil ||
				!strings.Contains(r.Message, "no Run is cut for it for some hours, unless a node") {
				s.t.Fatalf("run1 is refused for %+v\n%s", r, s.story())
			}
			s.restart()
		}
		for name, node := range s.Nodes {
			delete(s.Rejects, name)
			node = node.DeepCopy()
			node.Labels["zone"] = "other"
			s.SetNode(node)
		}
		s.work()
		s.running("run1", "where it is accepted now")
	})
}

// revealed counts the Reservations that have cut others.
func (s *storm) revealed() int {
	n := 0
	for _, r := range s.Reservations {
		if len(r.Status.Cuts) > 0 {
			n++
		}
	}
	return n
}

// A shard that does not go has the GPUs of the spare above it: no rank takes the spare's place before it has left.
func TestNoRankTakesTheSeatOfASpareOverAStuckShard(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 8)
		s.submitWithSpares("run0", "org:a", 1, 1, 4, 1, func(r *rqv1.RunSpec) {
			r.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Hour}}
		})
		s.work()
		spare := s.on("run0-s0")
		s.sweep("run1", "org:b", 1, 8)
		s.work()
		if s.shards("run1")[spare] != 1 {
			s.t.Fatalf("shards run on %v, want one under the spare", s.shards("run1"))
		}
		s.leave(s.pod("run1-0"), noticePeriod)
		s.hang(s.pod("run1-0"))
		s.submit("run2", "org:a", 1, 2, 4) // it waits for the shard, and then no more
		s.work()
		s.during(overstay + noticePeriod + time.Second)
		s.work()
		s.Lose(s.on("run0-0"))
		s.work()
		s.check()
		s.Ends.Delete(s.pod("run1-0"))
		s.DeletePod(s.pod("run1-0"))
		s.work()
		s.running("run0", "although the shard has left")
	})
}
