package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// fills has a Run hold all of some nodes, a pod on each, where nobody is drawn.
func (s *storm) fills(nodes int) {
	s.Book.DrawsBy("None")
	s.fleet("d0", nodes)
	s.setBudget("a", "org:a", 128)
	s.submit("run0", "org:a", 1, nodes, 8)
	s.work()
	s.running("run0", "on a fleet that is free")
}

// gaveBack has a Run of two pods run, for whose end an older Run of as many waits, and two younger ones of one.
func (s *storm) gaveBack() {
	s.fills(2)
	s.during(time.Second)
	s.submit("run1", "org:a", 1, 2, 8)
	s.work()
	s.during(time.Second)
	s.submit("run2", "org:a", 1, 1, 8)
	s.submit("run3", "org:a", 1, 1, 8)
	s.work()
}

// A process that dies after it has closed the first Lease of a Run leaves the others' room to who was first.
func TestARunHasAllThatOneGivesBackOverARestart(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.gaveBack()
		s.finish("run0")
		s.dies(1, sim.Closings)
		s.step(func() { s.reconcile("run0") })
		s.work()
		s.running("run1", "although it was first and has room")
	})
}

// A Lease that is not closed, since the API server is not up to it, is waited for for seconds.
func TestALeaseThatIsNotClosedKeepsNobodyForLong(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fills(2)
		s.during(time.Second)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.finish("run0")
		s.Faults.Add(sim.Fault{Of: sim.Closings, After: 1, Do: sim.Away, Lasts: true})
		s.work()
		if phase := s.Runs["run1"].Status.Phase; phase != rqv1.RunPending {
			s.t.Fatalf("run1 is %s before run0 has given back all\n%s", phase, s.story())
		}
		for range 4 {
			s.during(time.Second)
			s.work()
		}
		if phase := s.Runs["run1"].Status.Phase; phase != rqv1.RunRunning || len(s.OpenLeases()) != 2 {
			s.t.Fatalf("run1 is %s with %d open Leases, although run0 has given back one of two\n%s", phase,
				len(s.OpenLeases()), s.story())
		}
	})
}

// Whoever was first has all that a Run gives back, however that comes to its end, and if the process dies meanwhile.
func TestWhoIsFirstHasAllThatARunGivesBack(t *testing.T) {
	ends := map[string]func(s *storm){
		"completed": func(s *storm) { s.finish("run0") },
		"failed":    func(s *storm) { s.EndPod(s.pod("run0-1"), corev1.PodFailed) },
		"deleted":   func(s *storm) { s.DeleteRun("run0") },
		"suspended": func(s *storm) { s.suspend("run0", true) },
	}
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := newStorm(newWorld(t))
				s.gaveBack()
				s.dies(rapid.IntRange(0, 2).Draw(t, "writes"), sim.Closings|sim.Deletions)
				end(s)
				for range 3 {
					s.step(s.work)
					s.during(30 * time.Second)
				}
				s.step(s.work)
				s.running("run1", "although it was first and has room")
			})
		})
	}
}

// Those whose last pods take their time are waited for once, and not each time that another has ended.
func TestARunWhoseRanksEndApartKeepsNobody(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fills(3)
		for _, name := range []string{"run1", "run2"} {
			s.submit(name, "org:a", 1, 1, 8)
		}
		s.work()
		s.EndPod(s.pod("run0-0"), corev1.PodSucceeded)
		s.work()
		s.waits("run1", "before it is known that the others go on")
		s.during(time.Second)
		s.work()
		s.running("run1", "after a second")
		s.EndPod(s.pod("run0-1"), corev1.PodSucceeded)
		s.work()
		s.running("run2", "at once")
	})
}

// slowly has Leases be closed one by one: as many more as are said, until it is called again.
func (s *storm) slowly(closings int) {
	s.Faults.Drop(sim.Away)
	s.Faults.Add(sim.Fault{Of: sim.Closings, After: closings, Do: sim.Away, Lasts: true})
}

// What a large Run gives back is one though it takes long to write: as long as its Leases go on being closed the rest
// is waited for, but not for ever.
func TestWhatTakesLongToGiveBackIsOneAsWell(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fills(16)
		s.Pass(time.Second)
		s.submit("run1", "org:a", 1, 16, 8)
		s.work()
		s.Pass(time.Second)
		s.submit("run2", "org:a", 1, 1, 8)
		s.work()
		s.slowly(1)
		s.finish("run0")
		for n := range 9 {
			s.work()
			if phase := s.Runs["run2"].Status.Phase; phase != rqv1.RunPending {
				s.t.Fatalf("run2 is %s after %d seconds, while Leases go on being closed", phase, n)
			}
			s.Pass(time.Second)
			s.Book.TakeIn()
			s.slowly(1)
		}
		for range 3 {
			s.work()
			s.Pass(time.Second)
			s.Book.TakeIn()
			s.slowly(1)
		}
		s.work()
		s.running("run2", "after ten seconds")
	})
}

// What one Run gives back is not taken in since the Leases of another namespace are settled.
func TestWhatANamespaceLeavesIsItsOwn(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.gaveBack()
		s.slowly(1)
		s.finish("run0")
		s.work()
		s.Book.Budgets.NamespaceLeaves("other", false)
		s.work()
		s.waits("run2", "before run0 has given back all")
		s.Faults.Drop(sim.Away)
		s.work()
		s.running("run1", "although it was first")
	})
}
