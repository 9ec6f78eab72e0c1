package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// A Run that had grown starts again without what it had grown by, and loses a rank: it is kept what it holds now, and
// no more what it was wider by once, which others have been given.
func TestARequeuedRunIsKeptTheMoneyOfItsWidth(t *testing.T) {
	tell(t, func(w *world) {
		for _, domain := range []string{"d0", "d1"} {
			w.fleet(domain, 2)
		}
		w.setBudget("a", "org:a", 32)
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, checkpointed, elastic(2, 2), upTo(1))
		w.settle()
		w.granted("run0", 32)
		w.Lose(w.on("run0-0"))
		w.rounds(8)
		w.running("run0", "although the domain of its other group has room for it")
		w.granted("run0", 16)
		w.desire("run0", 16)
		w.fleet("d2", 2)
		w.submit("run1", "org:a", 1, 2, 8)
		w.rounds(8)
		w.running("run1", "although there are room and money for it")
		w.Lose(w.on("run0-0"))
		w.rounds(8)
		w.waits("run0", "on one node")
	})
}

// A group has lost all of its pods and a node. One that was made anew has its place, and has not been bound, when there
// is no room for another: the Run waits again, and each rank is paid for once.
func TestARankThatHasItsPlaceIsPaidForOnceWhenItsRunIsRequeued(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run00", "org:a", 1, 2, 8, 0, theirs)
		w.rounds(3)
		w.running("run00", "although its pods are there")
		w.Lose(w.boundSlots("run00")[0])
		for _, pod := range w.PodsOf("run00") {
			w.DeletePod(pod.UID)
		}
		w.reconcile("run00")
		for _, n := range []int{1, 0} {
			w.Make(sim.Foreign{Run: w.Runs["run00"], Slot: n})
			for range 3 {
				w.reconcile("run00")
				w.Act()
				for _, uid := range w.SortedPods() {
					w.cycle(uid)
				}
				w.check()
			}
		}
		w.waits("run00", "on one node")
	})
}

// A group waits again and has a pod bound in the second in which it was told so, by which nobody can tell that from its
// old ones. It does not get another in time, and starts again: each rank is paid for once.
func TestAPodThatCameInTheSecondOfTheRequeueIsPaidForOnce(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.anewInTheSecond()
		for range 4 {
			s.work()
			s.during(gangDeadline / 2)
		}
	})
}

// The process may die at any write of it.
func TestARankIsPaidForOnceAfterADeathAtAnyWrite(t *testing.T) {
	for writes := range 24 {
		tellStorm(t, func(s *storm) {
			s.anewInTheSecond()
			s.dies(writes, sim.All)
			for range 4 {
				s.step(s.work)
				s.during(gangDeadline / 2)
			}
		})
	}
}

// The process dies when a requeued Run has started in another domain, which loses a pod within that second: what ranks
// held before is not kept beside what they hold.
func TestARankThatHoldsIsKeptNothingAfterARestart(t *testing.T) {
	for writes := range 24 {
		tellStorm(t, func(s *storm) {
			s.fleet("d0", 2)
			s.fleet("d1", 2)
			s.setBudget("a", "org:a", 16)
			s.submitWithSpares("run1", "org:a", 1, 2, 8, 0, theirs)
			s.work()
			s.EvictByAPI(s.PodsOf("run1")[1].UID)
			s.Rejects["d0-n01"] = "Insufficient cpu"
			s.work()
			s.during(gangDeadline / 2)
			s.dies(writes, sim.All)
			s.step(s.work)
			s.during(time.Second / 2)
			clear(s.Rejects)
			if pods := s.PodsOf("run1"); len(pods) > 1 {
				s.EvictByAPI(pods[0].UID)
			}
			s.step(s.work)
		})
	}
}

// The time of a requeued Run is over, and the process dies before its status says so: who has been paid for meanwhile
// is not paid for beside it (I3).
func TestTheMoneyOfARequeuedRunIsOthersOnceThatIsRecorded(t *testing.T) {
	tell(t, func(w *world) {
		w.requeued(0)
		for !w.Book.Prospect(w.Runs["run0"].UID).RoomLapsed {
			w.rounds(1)
			w.waits("run0", "on one node")
		}
		w.addNode("n8", "d1")
		w.addNode("n9", "d2")
		w.submit("run2", "org:a", 2, 1, 8) // of the same owner, whose Budget pays for the requeued Run and no more
		for range 3 {
			w.reconcile("run2")
			for _, uid := range w.SortedPods() {
				w.cycle(uid)
			}
			for _, uid := range w.Bindings() {
				w.Bind(uid, sim.Written)
			}
			w.check()
		}
		w.crash()
		w.check()
		w.fleet("d2", 2)
		for _, uid := range w.SortedPods() {
			w.cycle(uid)
		}
		for _, uid := range w.Bindings() {
			w.Bind(uid, sim.Written)
		}
		w.check()
		w.DeleteRun("run1")
		w.settle()
		w.checkSettled()
	})
}

// So it is where that cannot be written, some time later, whoever schedules by then.
func TestTheMoneyOfARequeuedRunWhoseStatusCannotBeStoredIsOthers(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		tell(t, func(w *world) {
			w.requeued(0)
			w.Faults.Add(sim.Fault{Of: sim.Statuses, Do: sim.TooLarge, Lasts: true})
			for range 5 {
				w.Pass(gangDeadline / 2)
				w.rounds(2)
			}
			if crashes {
				w.crash()
			}
			w.rounds(2)
			if paid := w.Book.Budgets.Usage()[budget.Key{Budget: "a", Envelope: "e"}]; paid != 0 {
				w.t.Fatalf("%d GPUs are paid for that nobody holds", paid)
			}
		})
	}
}

// The process dies at any write of the start of a requeued Run: what its spares held is not paid for, and their room is
// not kept, beside what they hold by then.
func TestASpareThatHoldsIsKeptNothingAfterARestart(t *testing.T) {
	for writes := range 30 {
		tellStorm(t, func(s *storm) {
			s.fleet("d0", 2)
			s.fleet("d1", 2)
			s.setBudget("a", "org:a", 24)
			s.submitWithSpares("run0", "org:a", 2, 2, 4, 1, checkpointed)
			s.work()
			s.running("run0", "although there is a node for each pod")
			s.during(time.Second)
			domain := s.domainOf(s.Nodes[s.on("run0-0")])
			s.Lose(domain+"-n00", domain+"-n01")
			s.work()
			s.waits("run0", "on the nodes of one domain")
			s.fleet("d2", 2)
			s.dies(writes, sim.All)
			s.step(s.work)
			s.check()
			s.work()
			s.running("run0", "although there are nodes again")
		})
	}
}

// anewInTheSecond has all pods of a group that runs be evicted. One of its two nodes takes none of the new ones.
func (s *storm) anewInTheSecond() {
	s.fleet("d0", 2)
	s.setBudget("a", "org:a", 16)
	s.submitWithSpares("run1", "org:a", 1, 2, 8, 0, lateFirst)
	s.work()
	s.running("run1", "although its pods are there")
	for _, pod := range s.PodsOf("run1") {
		s.EvictByAPI(pod.UID)
	}
	s.during(time.Second)
	s.Rejects["d0-n01"] = "Insufficient cpu"
}

// lateFirst has the first pod of a group be made before its others.
func lateFirst(r *rqv1.RunSpec) {
	theirs(r)
	r.Pods.Late, r.Pods.First = true, 1
}

// The time of a requeued Run is over, and its status does not say so yet: what has paid for it is kept from it, as from
// any other, for whoever comes before it and has a date (R18, R22).
func TestARequeuedRunWhoseTimeIsOverLeavesItsMoneyToWhoComesFirst(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 4)
		s.setBudget("a", "org:a", 24)
		s.setBudget("b", "org:b", 16)
		s.submitWithSpares("run1", "org:a", 1, 2, 8, 0, checkpointed)
		s.submit("holder", "org:b", 1, 1, 8)
		s.submit("other", "org:b", 1, 1, 8)
		s.work()
		s.submit("first", "org:a", 1, 3, 8)
		s.work()
		s.during(time.Second)
		s.Lose(s.on("run1-0"))
		s.work()
		s.waits("run1", "on one node")
		if p := s.Book.Prospect(s.Runs["first"].UID).Promise; p == nil || !p.Cuts {
			s.t.Fatalf("first is promised %+v\n%s", p, s.story())
		}
		s.during(gangDeadline)
		s.Book.Lapse(s.Now)
		if !s.Book.Prospect(s.Runs["run1"].UID).RoomLapsed {
			s.t.Fatalf("the room of run1 is kept\n%s", s.story())
		}
		s.finish("other")
		for range 3 {
			s.reconcile("other")
			s.Act()
		}
		for _, uid := range s.SortedPods() {
			s.cycle(uid)
		}
		s.work()
		s.isRefused("run1", "reserved for Run ns/first")
	})
}
