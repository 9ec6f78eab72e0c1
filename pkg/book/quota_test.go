package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// The leader of a Run that waits has the last of a quota when a Run that runs loses a rank: what runs goes before.
func TestALeaderGivesWayToAPodThatARunningRunLacks(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 3)
		s.setBudget("a", "org:a", 128)
		s.submitWithSpares("runs", "org:a", 1, 2, 8, 0, checkpointed)
		s.work()
		s.during(time.Second)
		s.submit("waits", "org:a", 1, 2, 8)
		s.later(time.Minute)
		s.whole("runs", 2, 0)
		if active, _ := s.countPods("waits"); active != 1 {
			s.t.Fatalf("waits has %d pods", active)
		}
		s.Quota = 2
		s.loseRank("runs-1")
		s.later(30 * time.Second)
		s.whole("runs", 2, 0)
		s.denied("waits")
		s.Quota = 0
		s.later(3 * time.Minute)
		if active, _ := s.countPods("waits"); active == 0 {
			s.t.Fatal("waits has no pod although there is quota")
		}
	})
}

// A rank that was lost cannot be made: the Run says so and, after a while, goes on narrower, waits again or has failed.
func TestARankThatIsNotTakenHasNoRoom(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rqv1.RunSpec)
		phase  rqv1.RunPhase
		ranks  int
	}{
		"a malleable Run goes on narrower": {elastic(2, 1), rqv1.RunRunning, 2},
		"one with a checkpoint waits":      {checkpointed, rqv1.RunPending, 0},
		"any other has failed":             {func(*rqv1.RunSpec) {}, rqv1.RunFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleet("d0", 4)
				s.setBudget("a", "org:a", 128)
				s.submitWithSpares("run0", "org:a", 3, 1, 8, 0, c.change)
				s.work()
				s.during(time.Minute)
				s.Quota = 2
				s.loseRank("run0-0")
				s.later(gangDeadline / 2)
				s.running("run0", "and waits for its rank")
				s.says("run0", "replacing 1 of 3 pods")
				s.says("run0", "exceeded quota")
				s.later(2 * gangDeadline)
				if run := s.Runs["run0"]; run.Status.Phase != c.phase {
					s.t.Fatalf("it is %s: %s", run.Status.Phase, run.Status.Message)
				}
				if c.phase == rqv1.RunRunning {
					s.whole("run0", c.ranks, 0)
					s.says("run0", "shrunk to 16 GPUs")
				} else {
					s.says("run0", "exceeded quota")
				}
				s.checkRecords()
			})
		})
	}
}

// A rank is taken after all before its time is over: nothing is left of that when the next one is lost.
func TestTheTimeOfARankThatIsNotTakenBeginsAnew(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 5)
		s.setBudget("a", "org:a", 128)
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, checkpointed)
		s.work()
		s.during(time.Minute)
		for range 2 {
			s.Quota = 1
			s.loseRank("run0-1")
			s.later(gangDeadline * 3 / 4)
			s.running("run0", "and waits for its rank")
			s.Quota = 0
			s.later(5 * time.Second)
			s.whole("run0", 2, 0)
		}
	})
}

// What is made for a Run that is too wide for the quota goes, its leader too: one that fits it starts.
func TestARunThatIsTooWideForTheQuotaHoldsNoneOfIt(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 128)
		s.Quota = 3
		s.submit("wide", "org:a", 1, 4, 2)
		s.during(time.Second)
		s.submit("fits", "org:a", 1, 3, 2)
		s.later(5 * time.Minute)
		s.whole("fits", 3, 0)
		s.denied("wide")
	})
}

// An older Run waits for room, with its leader in the quota that a younger one needs, which has room.
func TestALeaderThatWaitsForRoomLeavesTheQuotaToWhoCanStart(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 128)
		s.submit("holder", "org:a", 1, 1, 8)
		s.work()
		s.during(time.Second)
		s.submit("older", "org:a", 1, 2, 8)
		s.work()
		s.during(time.Second)
		s.Quota = 3
		s.submit("younger", "org:a", 1, 2, 4)
		s.later(5 * time.Minute)
		s.whole("younger", 2, 0)
		s.denied("older")
	})
}

// A leader that is not taken is as good as any other pod: the Run waits for that, says so, and is tried again.
func TestALeaderThatIsNotTaken(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 128)
		s.submit("holder", "org:a", 1, 1, 8)
		s.work()
		s.Quota = 1
		s.during(time.Second)
		s.submit("younger", "org:a", 1, 1, 8)
		s.work()
		s.denied("younger")
		before := s.Writes
		s.later(10 * time.Minute)
		if n := s.Writes - before; n > 5 {
			s.t.Fatalf("%d writes are made for a Run that waits", n)
		}
		s.DeleteRun("holder")
		s.later(2 * time.Minute)
		s.running("younger", "although there is quota")
	})
}

// An older Run was resting when a quota had room for one more leader, and a younger one's took it: it gives way.
func TestOlderLeadersGoBeforeYoungerOnes(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 128)
		s.setBudget("b", "org:b", 128)
		s.submit("holder", "org:b", 1, 1, 8)
		s.submit("other", "org:b", 1, 1, 8)
		s.work()
		s.Quota = 2
		s.submit("older", "org:a", 1, 2, 8)
		s.later(time.Minute)
		s.denied("older")
		s.Quota = 3
		s.submit("younger", "org:a", 1, 2, 8)
		s.work()
		if active, _ := s.countPods("younger"); active != 1 {
			s.t.Fatalf("younger has %d pods", active)
		}
		s.later(100 * time.Second)
		if active, _ := s.countPods("older"); active != 1 {
			s.t.Fatalf("older has %d pods:\n%s", active, s.story())
		}
		s.denied("younger")
	})
}

// Shards have all of a quota: they give way to a Run of their namespace that pays, and to a rank that one lacks.
func TestShardsGiveWayInAQuota(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 128)
		s.sweep("shards", "org:a", 4, 2)
		s.later(5 * time.Second)
		s.fleet("d1", 3)
		s.Quota = 4
		s.submit("paid", "org:a", 1, 2, 8)
		s.later(5 * time.Minute)
		s.whole("paid", 2, 0)
		if n := s.shardsRun("shards"); n != 2 {
			s.t.Fatalf("%d shards run:\n%s", n, s.story())
		}
		if n := s.ledger("shards")[string(rqv1.ClosedReclaimedQuota)]; n == 0 {
			s.t.Fatalf("Leases of shards: %v", s.ledger("shards"))
		}
		s.Quota = 3
		s.loseRank("paid-1")
		s.later(30 * time.Second)
		s.whole("paid", 2, 0)
		if n := s.shardsRun("shards"); n != 1 {
			s.t.Fatalf("%d shards run:\n%s", n, s.story())
		}
	})
}

// The API server cannot make pods for a while, and says why: a Run that waits for its leader tells it, and so does one
// that lacks a rank, which stays as it is.
func TestWhyPodsCannotBeMadeIsTold(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 3)
		s.setBudget("a", "org:a", 128)
		s.submitWithSpares("runs", "org:a", 1, 2, 8, 0)
		s.work()
		s.during(time.Minute)
		s.Faults.Add(sim.Fault{Of: sim.Creations, Do: sim.Away, Lasts: true})
		s.loseRank("runs-1")
		s.submit("waits", "org:a", 1, 1, 8)
		s.later(4 * gangDeadline)
		s.running("runs", "and waits for its rank")
		s.says("runs", "it is away")
		s.says("waits", "it is away")
		s.Faults.Drop(sim.Away)
		s.later(30 * time.Second)
		s.whole("runs", 2, 0)
		s.says("runs", "16 GPUs")
	})
}

// A quota is for fewer pods than a Run has, however empty: nobody gives way to it.
func TestNobodyGivesWayToARunThatNoQuotaWouldTake(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 128)
		s.sweep("shards", "org:a", 4, 2)
		s.later(5 * time.Second)
		s.fleet("d1", 1)
		s.submit("waits", "org:a", 1, 2, 8)
		s.work()
		s.during(time.Second)
		s.Quota = 6
		leader := s.pod("waits-0")
		s.submit("wide", "org:a", 1, 8, 1)
		for range 40 {
			s.later(30 * time.Second)
			if n := s.shardsRun("shards"); n != 4 {
				s.t.Fatalf("%d shards run:\n%s", n, s.story())
			}
		}
		if s.Pods[leader] == nil {
			s.t.Fatal("the pod of a Run that waits is gone")
		}
		s.denied("wide")
	})
}

// A quota is for all ranks of a Run, and not for its spares besides: nobody gives way to it.
func TestNobodyGivesWayToARunWhoseSparesNoQuotaWouldTake(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 128)
		s.sweep("shards", "org:a", 4, 2)
		s.later(5 * time.Second)
		s.fleet("d1", 2)
		s.submit("waits", "org:a", 1, 3, 8)
		s.work()
		s.during(time.Second)
		s.Quota = 6
		leader := s.pod("waits-0")
		s.submitWithSpares("wide", "org:a", 1, 5, 1, 2)
		s.later(20 * time.Minute)
		if n := s.ledger("shards")[string(rqv1.ClosedReclaimedQuota)]; n > 0 {
			s.t.Fatalf("%d shards have given way", n)
		}
		if s.Pods[leader] == nil {
			s.t.Fatal("the pod of a Run that waits is gone")
		}
		s.denied("wide")
	})
}
