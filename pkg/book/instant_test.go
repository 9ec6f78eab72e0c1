package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A decision about who is cut is about what was held before it: its instant is after those of all Leases that were
// opened by then, also when the one who asks read the clock before the one who opened the last of them.
func TestAnActivationComesAfterAllLeasesBeforeIt(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		opened := time.Time{}
		for _, pod := range s.Pods {
			if pod.Spec.NodeName != "" {
				due, _ := s.Book.NextDue()
				lease, err := s.Book.NewLease(pod.UID, due.Add(3*time.Millisecond))
				if err != nil {
					s.t.Fatal(err)
				}
				opened = lease.Spec.Start.Time
			}
		}
		s.due()
		s.work()
		var activated *metav1.MicroTime
		for _, r := range s.Reservations {
			activated = r.Status.ActivatedAt
		}
		if activated == nil || !activated.After(opened) {
			s.t.Fatalf("run1 was activated at %v, and a Lease opened at %v before", activated, opened)
		}
	})
}

// So it is for a process that has read those Leases, and not opened them.
func TestAnActivationComesAfterTheLeasesOfAnotherProcess(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.thirdOfTwo()
		lease := s.OpenLeases()[1].DeepCopy()
		lease.Spec.Start = metav1.NewMicroTime(s.Now.Add(3 * time.Millisecond))
		s.SetLease(lease)
		s.restart()
		s.work()
		for _, r := range s.Reservations {
			if at := r.Status.ActivatedAt; at == nil || !at.After(lease.Spec.Start.Time) {
				s.t.Fatalf("run1 was activated at %v, and a Lease opened at %v before", at, lease.Spec.Start)
			}
		}
	})
}

// A Lease is handed out while the clock is an hour ahead, which is mended a minute later. Whoever is cut then is cut
// once: had the decision the hour that has not come, whoever started again would have started before it.
func TestAClockThatWasAheadCutsNobodyTwice(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, checkpointed)
		s.submitWithSpares("run2", "org:a", 1, 1, 8, 0, checkpointed, patient(45))
		s.work()
		s.during(time.Second)
		s.disturb()
		if _, err := s.Book.NewLease(s.pod("run2-0"), s.Now.Add(time.Hour)); err != nil {
			s.t.Fatal(err)
		}
		s.submit("run1", "org:b", 1, 2, 8)
		s.work()
		s.due()
		s.work()
		s.addNode("n2", "d0")
		for range 100 {
			s.during(time.Second)
			s.work()
		}
		if n := s.ledger("run0")["RandomPreempt"]; n != 1 {
			s.t.Fatalf("run0 is ended %d times by one draw:\n%s", n, s.story())
		}
	})
}

// cutAmidALoss has run1 of org:b come and run0 be cut for it, which has just lost its second rank.
func (s *storm) cutAmidALoss() {
	s.t.Helper()
	s.submit("run1", "org:b", 1, 1, 8)
	s.work()
	s.EndPod(s.pod("run0-1"), "")
	s.DeletePod(s.pod("run0-1"))
	s.reconcile("run0")
	s.due()
	s.Book.Turn(s.pod("run1-0"), s.Now)
	s.reconcile("run1")
	if len(s.Book.CutsOf(s.Runs["run0"].UID)) != 1 {
		s.t.Fatalf("run0 is not cut:\n%s", s.story())
	}
}

// A rank of a Run that a lottery ends, and whose pod had no place when that was decided, gets none afterwards: its
// Lease would be younger than the decision that closes it.
func TestARankOfARunThatIsEndedGetsNoPlace(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.submit("run0", "org:a", 1, 2, 8)
		s.work()
		s.during(time.Second)
		s.cutAmidALoss()
		s.cycle(s.pod("run0-1"))
		if node := s.Book.Assigned(s.pod("run0-1")); node != "" {
			s.t.Fatalf("a rank of a Run that is ended got a place on %s:\n%s", node, s.story())
		}
	})
}

// A Run that was cut starts again whatever the clock shows: what it holds from then on is not taken for what it held
// before.
func TestARunThatWasCutStartsAgainAlthoughTheClockHasGoneBack(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 16)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, checkpointed)
		s.work()
		s.during(time.Minute)
		s.submit("run1", "org:b", 1, 1, 8)
		s.work()
		s.due()
		s.work()
		s.Jump(-10 * time.Minute)
		s.disturb()
		s.addNode("n1", "d0")
		s.later(time.Minute)
		s.running("run1", "although run0 was cut for it")
		s.running("run0", "although there is a node for it")
	})
}
