package book_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// many is more than have dates at once of those who wait for the same.
const many = 34

// submitMany submits many Runs of a number of pods that hold a node each.
func (s *storm) submitMany(name, owner string, pods int) {
	for i := range many {
		s.submitWithSpares(fmt.Sprintf("%s%02d", name, i), rqv1.Owner("org:"+owner), 1, pods, 8, 0, lasting(time.Hour))
	}
	s.work()
	s.during(time.Second)
}

// settles lets all be forecast who are to be.
func (s *storm) settles() {
	for range 8 {
		s.during(5 * time.Second)
		s.work()
	}
}

// Runs that cannot have a date keep nobody behind them from having one.
func TestThoseWithoutADateTakeNoneFromOthers(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("stays", "org:a", 1, 1, 8, 0)
		s.submitWithSpares("ends", "org:a", 1, 1, 8, 0, lasting(time.Hour))
		s.work()
		s.during(time.Second)
		s.submitMany("never", "a", 2) // as long as one stays, nobody pays for two
		s.submitWithSpares("last", "org:a", 1, 1, 8, 0)
		s.settles()
		if p := s.Book.Prospect(s.Runs["last"].UID); p.Promise == nil {
			s.t.Errorf("the last has no date: %+v, in line %+v", p.Refusal, p.InLine)
		}
		if p := s.Book.Prospect(s.Runs["never33"].UID); p.Promise != nil || p.InLine == nil || p.InLine.Ahead != 33 {
			s.t.Errorf("who never starts is promised %+v, and stands in line at %+v", p.Promise, p.InLine)
		}
		message := s.Runs["never33"].Status.Message
		why := "no known future event would let it start; other Runs ahead of it wait"
		if !strings.Contains(message, why) {
			s.t.Errorf("it says %q", message)
		}
		if s.t.Failed() {
			s.t.FailNow()
		}
	})
}

// Runs that wait for the money of one owner take no dates from those that wait for another's.
func TestEachOwnersMoneyHasALineOfItsOwn(t *testing.T) {
	tellLongStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 8)
		s.setBudget("b", "org:b", 8)
		s.submitWithSpares("holds-a", "org:a", 1, 1, 8, 0, lasting(time.Hour))
		s.submitWithSpares("holds-b", "org:b", 1, 1, 8, 0, lasting(time.Hour))
		s.work()
		s.during(time.Second)
		s.submitMany("first", "a", 1)
		s.submitWithSpares("other", "org:b", 1, 1, 8, 0)
		s.settles()
		if p := s.Book.Prospect(s.Runs["other"].UID); p.Promise == nil {
			s.t.Fatalf("the Run of the other owner has no date: %+v, in line %+v", p.Refusal, p.InLine)
		}
	})
}

// woken returns the Runs that are to be tried, by name, of their leaders or their controllers.
func woken(a book.Actions) []string {
	var out []string
	for _, pod := range a.Activate {
		out = append(out, pod.Labels[rqv1.LabelRun])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// GPUs that are free here and there wake nobody who needs more of them on one node, or in one domain; once there are so
// many there, the oldest is woken, and nobody else for the same.
func TestRoomThatDoesNotLieTogetherWakesNobody(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d1")
		w.setBudget("a", "org:a", 800)
		for i := range 4 {
			w.submit(fmt.Sprintf("holds%d", i), "org:a", 1, 1, 4)
		}
		w.settle()
		for i := range 3 {
			w.submit(fmt.Sprintf("waits%d", i), "org:a", 1, 1, 8)
		}
		w.submit("wide", "org:a", 1, 2, 4)
		w.settle()
		on := map[string][]string{}
		for i := range 4 {
			run := fmt.Sprintf("holds%d", i)
			node := w.Book.Assigned(w.pod(run + "-0"))
			on[node] = append(on[node], run)
		}
		leaves := func(run string) []string {
			w.Book.TakeActions()
			pod := w.Pods[w.pod(run+"-0")].DeepCopy()
			w.DeleteRun(run)
			pod.Status.Phase = corev1.PodSucceeded
			w.Book.SetMember(pod)
			w.Book.SetPod(pod)
			for _, lease := range w.OpenLeases() {
				if lease.Spec.RunRef.Name == run {
					w.Book.SetLease(ended(lease, w.Now))
				}
			}
			w.Book.DeleteMember(pod)
			w.Book.DeletePod(pod)
			return woken(w.Book.TakeActions())
		}
		if got := append(leaves(on["n0"][0]), leaves(on["n1"][0])...); len(got) > 0 {
			w.t.Fatalf("4 GPUs are free on each of two nodes, and %v are woken", got)
		}
		if got := leaves(on["n0"][1]); !slices.Equal(got, []string{"waits0"}) {
			w.t.Fatalf("a node is free, and %v are woken", got)
		}
	})
}

// Of those who wait, a Run of which it was never worked out when it starts comes before those whose dates are old.
func TestWhoHasNoDateYetIsForecastBeforeOthers(t *testing.T) {
	tellLongStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 800)
		s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, lasting(time.Hour))
		s.work()
		for i := range 12 {
			s.during(time.Second)
			s.submitWithSpares(fmt.Sprintf("dated%02d", i), "org:a", 1, 1, 8, 0, lasting(time.Hour))
			s.work()
		}
		s.during(time.Minute) // all of these dates have grown old
		s.submit("new", "org:a", 1, 1, 8)
		s.reconcile("new")
		s.refused(s.pod("new-0"))
		for range 2 {
			s.Now = s.Now.Add(time.Second)
			s.Book.WorkOutNext(s.Now, 0)
		}
		if p := s.Book.Prospect(s.Runs["new"].UID); p.Undated || p.Promise == nil {
			s.t.Fatalf("two forecasts were made, and the new Run has no date: %+v", p)
		}
	})
}

// A date is worked out again when something has changed on which it rests: other owners' money is nothing of that kind.
func TestADateDoesNotRestOnOtherOwnersMoney(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.full()
		s.setBudget("c", "org:c", 8)
		s.work()
		asked := func(budget string, gpus int) bool {
			s.Now = s.Now.Add(time.Second)
			for s.Book.WorkOutNext(s.Now, 0) {
				s.Now = s.Now.Add(time.Second)
			}
			b := s.Budgets[budget].DeepCopy()
			b.Generation += 1000
			b.Spec.Envelopes[0].Concurrency = int32(gpus)
			s.SetBudget(b)
			s.Now = s.Now.Add(time.Second)
			return s.Book.WorkOutNext(s.Now, 0)
		}
		if asked("c", 16) {
			s.t.Error("run1's date is worked out again since another owner has more")
		}
		if !asked("b", 32) {
			s.t.Error("run1's date is not worked out again although its owner has less")
		}
		if s.t.Failed() {
			s.t.FailNow()
		}
	})
}

// GPU-hours that a Budget is given are for those who lack them.
func TestMoreGPUHoursWakeThoseAloneWhoLackThem(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 8)
		w.setBudget("b", "org:b", 8)
		w.hours("b", 4)
		w.submit("holds", "org:a", 1, 1, 8)
		w.settle()
		w.submit("gpus", "org:a", 1, 1, 8)
		w.submit("hours", "org:b", 1, 1, 8)
		w.settle()
		told := func() (out []string) {
			for _, run := range w.Book.TakeActions().Reconcile {
				out = append(out, run.Name)
			}
			slices.Sort(out)
			return slices.Compact(out)
		}
		told()
		w.hours("b", 5)
		if got := told(); !slices.Equal(got, []string{"hours"}) {
			w.t.Fatalf("b has more GPU-hours, and %v are looked at", got)
		}
		w.hours("a", 1000)
		told()
		w.hours("a", 2000)
		if got := told(); len(got) > 0 {
			w.t.Fatalf("a has more GPU-hours, which nobody lacks, and %v are looked at", got)
		}
	})
}

// A leader that is to be tried and does not come is called again, and what there is for it is another's meanwhile.
func TestALeaderThatDoesNotComeIsCalledAgain(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 800)
		w.submit("holds", "org:a", 1, 1, 8)
		w.settle()
		for _, run := range []string{"lost", "next"} {
			w.submit(run, "org:a", 1, 1, 8)
			w.settle()
		}
		w.Book.TakeActions()
		w.addNode("n1", "d0")
		if got := woken(w.Book.TakeActions()); !slices.Equal(got, []string{"lost"}) {
			w.t.Fatalf("a node has come, and %v are woken", got)
		}
		calls := map[string]int{}
		for range 150 {
			w.Now = w.Now.Add(time.Second)
			if next, due := w.Book.Next(w.Now); !due || next.After(w.Now.Add(time.Minute)) {
				w.t.Fatalf("nothing is due before %s", next)
			}
			w.Book.Advance(w.Now)
			for _, run := range woken(w.Book.TakeActions()) {
				calls[run]++
			}
		}
		if calls["lost"] != 2 || calls["next"] == 0 {
			w.t.Fatalf("in 150 s they are called %v times", calls)
		}
	})
}

// Those who have been found to have no date have their turn while others keep coming of whom it has not been found yet.
func TestThoseWithoutADateHaveATurnAmongNewcomers(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("stays", "org:a", 1, 1, 8, 0)
		s.submitWithSpares("ends", "org:a", 1, 1, 8, 0, lasting(time.Hour))
		s.work()
		s.during(time.Second)
		s.submitWithSpares("never", "org:a", 1, 2, 8, 0) // as long as one stays, nobody pays for two
		s.submitWithSpares("later", "org:a", 1, 1, 8, 0)
		s.settles()
		s.during(10 * time.Minute)
		s.setBudget("b", "org:b", 64)
		s.submitWithSpares("newcomer", "org:b", 1, 1, 8, 0)
		s.reconcile("newcomer")
		s.Act()
		s.refused(s.pod("newcomer-0"))
		turns := map[string]int{}
		for range 16 {
			for _, uid := range s.Book.Stale(s.Now) {
				turns[string(uid)]++
			}
		}
		for _, name := range []string{"never", "later", "newcomer"} {
			if turns[string(s.Runs[name].UID)] == 0 {
				s.t.Errorf("%s has no turn of 16: %v", name, turns)
			}
		}
		if s.t.Failed() {
			s.t.FailNow()
		}
	})
}
