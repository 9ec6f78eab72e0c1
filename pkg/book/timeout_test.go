package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// again has a Run run for a while and then wait once more.
func again(d time.Duration) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		if s.Runtime == nil {
			s.Runtime = &rqv1.RunRuntime{}
		}
		s.Runtime.MaxDuration, s.Runtime.Checkpoint = &metav1.Duration{Duration: d}, &metav1.Duration{Duration: time.Minute}
		s.Runtime.OnTimeout = rqv1.TimeoutRequeue
	}
}

// timedOut asserts that a Run whose time is over is told so once, keeps no room, and has its place from then on.
func (s *storm) timedOut(was, next *rqv1.Run) {
	before, after := was.Status.Timeouts, next.Status.Timeouts
	if cmp.Equal(before, after) {
		return
	}
	s.tally["timed out"]++
	count := int32(1)
	if before != nil {
		count += before.Count
	}
	if end, limited := was.EndsAt(); !limited || s.Now.Before(end) {
		s.t.Fatalf("R22: the time of %s is said to be over at %s, and is at %s", next.Name, s.Now, end)
	}
	want := &rqv1.RunTimeouts{Count: count, Last: metav1.NewTime(s.Now.Truncate(time.Second)), Attempt: was.Status.Attempt}
	if diff := cmp.Diff([]any{want, &want.Last, rqv1.RunPending, was.Status.Attempt + 1},
		[]any{after, next.Status.PlaceSince, next.Status.Phase, next.Status.Attempt}); diff != "" {
		s.t.Fatalf("R22: %s is told that its time is over (-want +got):\n%s", next.Name, diff)
	}
}

// A Run whose time is over gives up what it holds, as was promised to others, and comes after all who wait by then,
// also by a process that begins anew. Each attempt lasts for its whole maxDuration.
func TestARunWhoseTimeIsOverComesLast(t *testing.T) {
	for _, crash := range []string{"", "waits", "ends"} {
		tellStorm(t, func(s *storm) {
			s.addNode("n0", "d0")
			s.setBudget("a", "org:a", 8)
			s.setBudget("b", "org:b", 16)
			s.submitWithSpares("run0", "org:a", 1, 2, 4, 0, again(90*time.Second), patient(20))
			s.work()
			s.running("run0", "at first")
			started, _ := s.Runs["run0"].StartedAt()
			s.during(time.Second)
			s.submitWithSpares("run1", "org:b", 1, 1, 8, 0, lasting(time.Minute))
			s.work()
			p := s.Book.Prospect(s.Runs["run1"].UID).Promise
			if p == nil || p.At.Before(started.Add(90*time.Second)) || p.At.After(started.Add(2*time.Minute-1)) {
				s.t.Fatalf("run1 is promised %+v", p)
			}
			s.during(started.Add(89 * time.Second).Sub(s.Now))
			s.submitWithSpares("run2", "org:b", 1, 1, 8, 0, lasting(time.Minute))
			s.work()
			s.running("run0", "a second before its time is over")
			s.during(time.Second)
			if crash == "waits" {
				s.reconcile("run0") // its status is written, and nothing else may be
				s.restart()
			}
			s.work()
			s.waits("run0", "when its time is over")
			if crash == "ends" {
				s.restart()
			}
			s.during(21 * time.Second)
			s.work()
			s.running("run1", "in the room that it was promised")
			s.waits("run0", "behind those who were there when its time was over")
			if reasons, open := s.closedOf("run0"); open > 0 || !cmp.Equal(reasons,
				map[rqv1.ClosureReason]int{rqv1.ClosedTimedOut: 2}) {
				s.t.Fatalf("%d Leases are open, and they closed as %v", open, reasons)
			}
			s.finish("run1")
			s.work()
			s.running("run2", "which is older than run0's place")
			s.submitWithSpares("run3", "org:b", 1, 1, 8, 0, lasting(time.Minute))
			s.work()
			s.finish("run2")
			s.work()
			s.running("run0", "which has waited for longer than run3")
			again, _ := s.Runs["run0"].StartedAt()
			if ends, _ := s.Runs["run0"].EndsAt(); !ends.Equal(again.Add(90*time.Second)) || s.Runs["run0"].Status.Attempt != 1 {
				s.t.Fatalf("attempt %d lasts from %s until %s", s.Runs["run0"].Status.Attempt, again, ends)
			}
			s.during(91 * time.Second)
			s.work()
			s.during(21 * time.Second)
			s.work()
			s.running("run3", "now that run0's time is over again")
			if n := s.Runs["run0"].Status.Timeouts.Count; n != 2 {
				s.t.Fatalf("it has timed out %d times", n)
			}
		})
	}
}

// Alone, it starts again at once, as wide as fits by then, with its spares, and is lost to nobody.
func TestAnElasticRunWithSparesStartsAgain(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, node := range []string{"n0", "n1", "n2"} {
			s.addNode(node, "d0")
		}
		s.setBudget("a", "org:a", 24)
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 1, ungrouped, elastic(1, 1), again(time.Minute))
		s.work()
		s.running("run0", "at first")
		s.setBudget("a", "org:a", 16)
		for range 3 {
			s.during(30 * time.Second)
			s.work()
		}
		s.running("run0", "again")
		run := s.Runs["run0"]
		if w := run.Status.Width; w.Granted != 8 || run.Status.Timeouts == nil || run.Status.Timeouts.Count != 1 {
			s.t.Fatalf("it runs with %+v, %+v", w, run.Status.Timeouts)
		}
	})
}

// Who is cut after having waited again waits by the place that it had then, not by its age.
func TestARunThatIsCutInALaterAttemptKeepsItsLaterPlace(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 8)
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, again(time.Hour))
		s.work()
		s.during(time.Hour)
		s.work()
		s.during(noticePeriod)
		s.work()
		s.running("run0", "again")
		since := s.Runs["run0"].Status.Timeouts.Last
		s.restart()
		s.Lose("n0")
		for range 3 {
			s.during(gangDeadline)
			s.work()
		}
		s.waits("run0", "without a node")
		if got := s.Runs["run0"].Status.PlaceSince; got == nil || !got.Equal(&since) {
			s.t.Fatalf("it has its place since %v, and its time was over at %s", got, since)
		}
	})
}
