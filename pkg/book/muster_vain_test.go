package book_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// The API server cannot make a gang's pods for an hour, and does not say that it will not take them: others have the
// room meanwhile, the Run is told, and it starts when that is over.
func TestAGangWhosePodsCannotBeMadeKeepsNoRoom(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.setBudget("a", "org:a", 64)
		s.addNode("n0", "d1")
		s.submit("holder", "org:a", 1, 1, 8)
		s.work()
		s.submit("older", "org:a", 1, 4, 2)
		s.during(time.Second)
		s.submit("younger", "org:a", 1, 1, 8)
		s.work()
		s.Faults.Add(sim.Fault{Of: sim.Creations, Do: sim.Away, Lasts: true})
		s.addNode("n1", "d0")
		s.later(5 * time.Minute)
		s.running("younger", "although the pods of the older one cannot be made")
		if m := s.Runs["older"].Status.Message; !strings.Contains(m, "could not be created") ||
			!strings.Contains(m, "is away") {
			s.t.Fatalf("the older one is told: %s", m)
		}
		s.Faults.Drop(sim.Away)
		s.addNode("n2", "d0")
		s.later(20 * time.Minute)
		s.running("older", "although there is room and its pods can be made")
	})
}

// A node turns down a rank that is not the leader, and the rules cannot be asked beforehand: its gang is not made and
// taken away again every few seconds.
func TestAGangThatIsTurnedDownIsNotMadeOverAndOver(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.Rejects["d0-n01"] = "node(s) had volume node affinity conflict"
		s.submit("run0", "org:a", 1, 2, 8)
		s.work()
		before := s.NextUID
		s.later(20 * time.Minute)
		if made := s.NextUID - before; made > 12 {
			s.t.Fatalf("%d objects were made within 20 minutes", made)
		}
		clear(s.Rejects)
		s.later(20 * time.Minute)
		s.running("run0", "although both nodes accept it")
	})
}

// The last of the old pods of a Run that was cut is gone long after its leader has been made anew: it is planned then.
func TestACutRunIsPlannedWhenItsLastPodIsGone(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 128)
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, func(r *rqv1.RunSpec) {
			r.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Hour}}
		})
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.due()
		s.work()
		stays := s.pod("run0-1")
		s.hang(stays)
		s.disturb()
		s.during(noticePeriod)
		s.work()
		for _, node := range []string{"m0", "m1", "m2"} {
			s.addNode(node, "d0")
		}
		s.later(5 * time.Second)
		s.Ends.Set(stays, s.Now)
		s.later(time.Minute)
		s.running("run0", "although there is room, and none of its old pods is left")
	})
}

// What other rules look at may be there a moment after a pod is, such as a claim that is made for it: the pod is there
// still when they are asked again.
func TestPodsThatAreTurnedDownStayForAnotherTry(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.Rejects["d0-n01"] = "waiting for the persistentvolumeclaim"
		s.submit("run0", "org:a", 1, 2, 8)
		s.later(5 * time.Second)
		first := s.pod("run0-1")
		clear(s.Rejects)
		s.later(20 * time.Second)
		s.running("run0", "although both nodes accept it")
		if s.pod("run0-1") != first {
			s.t.Fatal("its pod was made twice")
		}
	})
}

// A pod of an earlier Run of the same name is stuck, so that a gang's own cannot be made: others have the room
// meanwhile.
func TestAGangThatWaitsForANameKeepsNoRoom(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.setBudget("a", "org:a", 64)
		s.addNode("n0", "d0")
		s.submit("older", "org:a", 1, 2, 4)
		s.work()
		stuck := s.pod("older-1")
		s.DeleteRun("older")
		s.work()
		s.hang(stuck)
		s.later(time.Minute)
		s.submit("older", "org:a", 1, 2, 4)
		s.during(time.Second)
		s.submit("younger", "org:a", 1, 1, 8)
		s.later(5 * time.Second)
		s.addNode("n1", "d0")
		s.later(10 * time.Minute)
		s.running("younger", "although a pod of the older one cannot be made")
	})
}

// The pods of a Run that pays are not taken: the shards in its places stay, and leave once they are.
func TestShardsStayForPodsThatAreNotTaken(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 128)
		s.sweep("shards", "org:a", 4, 2)
		s.later(5 * time.Second)
		if n := s.shards("shards")["n0"]; n != 4 {
			s.t.Fatalf("%d shards run", n)
		}
		s.Denies["paid-2"] = "violates PodSecurity"
		s.submit("paid", "org:a", 1, 4, 2)
		for range 20 {
			s.later(5 * time.Second)
			if n := s.shards("shards")["n0"]; n != 4 {
				s.t.Fatalf("%d shards run:\n%s", n, s.story())
			}
		}
		s.says("paid", "violates PodSecurity")
		for _, lease := range s.Leases {
			if lease.Status.Closed {
				s.t.Fatalf("Lease %s closed: %s", lease.Name, lease.Status.ClosureReason)
			}
		}
		clear(s.Denies)
		s.later(5 * time.Minute)
		s.whole("paid", 4, 0)
	})
}

// The scheduler dies at any write between making the pods of a Run and telling the shards in its places to go.
func TestAMusterAmongShardsSurvivesADeathAtAnyWrite(t *testing.T) {
	for writes := range 12 {
		tellStorm(t, func(s *storm) {
			s.addNode("n0", "d0")
			s.setBudget("a", "org:a", 128)
			s.sweep("shards", "org:a", 4, 2)
			s.later(5 * time.Second)
			s.submit("paid", "org:a", 1, 4, 2)
			s.dies(writes, sim.All)
			s.step(s.work)
			s.Faults.Drop(sim.Crash)
			s.later(30 * time.Second)
			s.whole("paid", 4, 0)
			for _, lease := range s.Leases {
				if reason := lease.Status.ClosureReason; reason != "" && reason != rqv1.ClosedReclaimed {
					s.t.Fatalf("Lease %s closed: %s", lease.Name, reason)
				}
			}
		})
	}
}

// A Run takes what others are leaving, shards run on the rest of its places, and its pods cannot be made: others have
// the room after a while.
func TestWhoseTurnHasComeAmongShardsKeepsNoRoomInVain(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.foreign("other", "n0", 4)
		s.sweep("shards", "org:b", 4, 1)
		s.work()
		s.during(time.Second)
		s.submit("older", "org:a", 1, 2, 4)
		s.work()
		s.during(time.Second)
		s.submit("younger", "org:a", 1, 1, 8)
		s.work()
		s.during(reservationLead - 20*time.Second)
		s.work()
		s.Faults.Add(sim.Fault{Of: sim.Creations, Do: sim.Away, Lasts: true})
		s.leave(s.pod("other"), time.Minute)
		s.later(3 * gangDeadline)
		s.running("younger", "although the pods of the older one cannot be made")
		s.Faults.Drop(sim.Away)
		s.DeleteRun("younger")
		s.later(10 * time.Minute)
		s.running("older", "although there is room and its pods can be made")
	})
}
