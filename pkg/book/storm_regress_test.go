package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// tellStorm plays a story with Reservations that needs no chance.
func tellStorm(t *testing.T, story func(s *storm)) {
	t.Helper()
	plays(t, 10, func(t *rapid.T) { story(newStorm(newWorld(t))) })
}

// tellLongStorm plays one that takes long only a few times.
func tellLongStorm(t *testing.T, story func(s *storm)) {
	t.Helper()
	plays(t, 3, func(t *rapid.T) { story(newStorm(newWorld(t))) })
}

// due lets time go by until the next Run's turn comes, and has it decided on.
func (s *storm) due() {
	next, ok := s.Book.NextDue()
	if !ok {
		s.t.Fatalf("nothing is due:\n%s", s.story())
	}
	s.during(next.Sub(s.Now))
}

// The scheduler dies after any of the writes of an activation. The same is drawn, and the Run starts.
func TestAnActivationSurvivesADeathAtAnyWrite(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.addNode("n1", "d0")
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 16)
		s.submitWithSpares("run0", "org:a", 1, 2, 4, 1) // it declares no checkpoint, so it fails when it is cut
		s.work()
		s.during(time.Minute)
		s.submit("run1", "org:b", 2, 1, 8)
		s.work()
		s.due()
		s.dies(rapid.IntRange(0, 12).Draw(s.t, "writes"), sim.All)
		s.step(s.work)
		s.Faults.Drop(sim.Crash)
		for range 2 {
			s.work()
			s.during(noticePeriod)
		}
		s.work()
		s.running("run1", "although run0 was cut for it")
		if r := s.Reservations["run1-r0"]; r.Status.State != rqv1.ReservationReleased {
			s.t.Fatalf("the Reservation is %s: %s", r.Status.State, r.Status.Reason)
		}
		s.checkRecords()
	})
}

// Two Runs wait for the same window, which pays for one of them. Their dates do not take turns for ever.
func TestRunsThatWaitForOneWindowComeToRest(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.addNode("n1", "d1")
		s.setBudget("a", "org:a", 8)
		b := s.Budgets["a"].DeepCopy()
		opens := metav1.NewTime(s.Now.Add(time.Hour))
		b.Spec.Envelopes[0].Start, b.Generation = &opens, 1000
		s.SetBudget(b)
		s.submit("run0", "org:a", 1, 1, 8)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		writes := s.writes
		s.during(time.Second)
		s.work()
		if s.writes != writes || len(s.Reservations) > 2 {
			s.t.Fatalf("Reservations come and go:\n%s", s.story())
		}
	})
}

// What a watch brings late is older than what the process has written itself, and changes nothing.
func TestAnOldVersionOfAReservationChangesNothing(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 16)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.during(time.Minute)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		old := s.Reservations["run1-r0"]
		s.due()
		s.work()
		cuts := s.Book.CutsOf(s.Runs["run0"].UID)
		if len(cuts) != 1 {
			s.t.Fatalf("run0 is cut %d times, want once", len(cuts))
		}
		s.Book.SetReservation(old)
		if diff := cmp.Diff(cuts, s.Book.CutsOf(s.Runs["run0"].UID)); diff != "" {
			s.t.Fatalf("an old version changes the cuts (-before +after):\n%s", diff)
		}
	})
}

// A step of a grouped Run takes the spares of its groups along: no other spare is dropped for what they free.
func TestAStepTakesItsSparesAlong(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, node := range []string{"n0", "n1", "n2"} {
			s.addNode(node, "d0")
		}
		s.setBudget("a", "org:a", 32)
		s.setBudget("b", "org:b", 32)
		s.submitWithSpares("run0", "org:a", 3, 1, 4, 1, elastic(1, 2))
		s.work()
		s.during(time.Minute)
		s.submit("run1", "org:b", 1, 4, 4)
		s.work()
		s.due()
		s.work() // which judges what is decided
		r := s.Reservations["run1-r0"]
		if len(r.Status.Cuts) != 1 || r.Status.Cuts[0].Action != rqv1.CutShrink {
			s.t.Fatalf("the cuts are %+v, want run0 shrunk and no more", r.Status.Cuts)
		}
	})
}

// Two Runs are decided on in one sweep. The second is placed where the first is and where those are who leave for the
// second: the cuts for the first are judged by what there was when they were decided on.
func TestDecisionsOfOneSweepAreJudgedOneByOne(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 3)
		for _, owner := range []string{"a", "b", "c", "d"} {
			s.setBudget(owner, rqv1.Owner("org:"+owner), 16)
		}
		s.submitWithSpares("drawn", "org:b", 1, 1, 4, 0, checkpointed)
		s.work()
		s.submitWithSpares("spared", "org:a", 1, 1, 8, 1, checkpointed)
		s.work()
		s.during(31 * time.Second)
		s.submit("first", "org:c", 1, 3, 4)
		s.submit("second", "org:d", 1, 3, 4)
		s.work()
		s.due()
		s.refresh()
		for name, cuts := range map[string]int{"first": 1, "second": 2} {
			if a := s.Book.Decided(s.Runs[name].UID); a == nil || len(a.Cuts) != cuts {
				s.t.Fatalf("%s: %+v is decided, want %d cuts\n%s", name, a, cuts, s.story())
			}
		}
	})
}
