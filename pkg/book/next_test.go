package book_test

import (
	"testing"
	"time"
)

// sleeps lets time go by in which nobody does anything but the book, when it has said that something is due, until that
// has happened. It asserts that this is at an instant, to the millisecond.
func (w *world) sleeps(at time.Time, happened func() bool) {
	for w.Now.Before(at.Add(gangDeadline)) {
		w.Book.Advance(w.Now)
		if w.Book.WorkOutNext(w.Now, 0); happened() {
			break
		}
		next, ok := w.Book.Next(w.Now)
		if !ok {
			w.t.Fatalf("nothing is due any more, and it has not happened")
		}
		w.Now = w.Now.Add(max(time.Millisecond, next.Sub(w.Now)))
	}
	if off := w.Now.Sub(at); off.Abs() > 2*time.Millisecond {
		w.t.Fatalf("it happens %s later than it is due", off)
	}
}

// Money comes to be there while a Run rests that would like to grow.
func TestARunThatHasRestedGrows(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, elastic(1, 1), upTo(8))
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		w.running("run0", "at first")
		w.running("run1", "at first")
		w.addNode("n9", "d0")
		w.grow()
		rested := w.Now.Add(30 * time.Second)
		w.Pass(10 * time.Second)
		w.DeleteRun("run1")
		for _, lease := range w.OpenLeases() {
			if lease.Spec.RunRef.Name == "run1" {
				w.SetLease(ended(lease, w.Now))
			}
		}
		w.sleeps(rested, func() bool { return w.Book.Prospect(w.Runs["run0"].UID).GrowTo == 16 })
	})
}

// The room of a requeued Run lapses; nobody else waits for it, whose date would be then.
func TestRoomThatIsKeptLapsesInTime(t *testing.T) {
	tell(t, func(w *world) {
		w.requeued(0)
		w.DeleteRun("run1")
		w.rounds(2)
		w.Pass(time.Second / 2)
		gone := time.Time{} // the last of its old pods
		for _, lease := range w.Leases {
			if ended := lease.Status.Ended; ended != nil && ended.After(gone) {
				gone = ended.Time
			}
		}
		w.sleeps(gone.Add(gangDeadline), func() bool { return w.Book.Prospect(w.Runs["run0"].UID).RoomLapsed })
	})
}

// A pod that a Run waits for should be long gone.
func TestAStuckVictimIsNoticedInTime(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.stuckVictim(2)
		until := s.Now.Add(noticePeriod)
		s.during(noticePeriod)
		s.work()
		s.sleeps(until.Add(overstay), func() bool { return len(s.Book.Prospect(s.Runs["run1"].UID).Stuck) > 0 })
	})
}

// A shard tries a node again that turned it down.
func TestANodeThatTurnedAShardDownIsForgivenInTime(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 16)
		w.sweep("run0", "org:a", 1, 4)
		w.reconcile("run0")
		w.Book.Advance(w.Now)
		shard := w.pod("run0-0")
		if w.Book.Assigned(shard) != "n0" {
			w.t.Fatal("the shard has no place")
		}
		forgiven := w.Now.Add(5 * time.Second)
		w.Pass(time.Second / 2)
		w.Book.Turned(shard, "n0", "no CPU")
		w.sleeps(forgiven, func() bool { return w.Book.Assigned(shard) != "" })
	})
}

// The next forecast begins four times as long after one as that took.
func TestForecastsTakeAQuarterOfTheTime(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.full()
		s.Now = s.Now.Add(time.Minute) // what is promised has grown old by then
		for i, c := range []struct {
			after, last time.Duration
			worked      bool
		}{{0, 0, true}, {time.Second, 10 * time.Second, false}, {38 * time.Second, 0, false}, {2 * time.Second, 0, true}} {
			s.Now = s.Now.Add(c.after)
			if got := s.Book.WorkOutNext(s.Now, c.last); got != c.worked {
				s.t.Fatalf("call %d: a promise was worked out: %v, want %v", i, got, c.worked)
			}
		}
	})
}
