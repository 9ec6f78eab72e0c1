package book_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

const firstInLine = "first in line for what its owner may spend"

// lineOf has small Runs of an owner hold all that it may spend, and a large one wait for all of it, for longer than the
// lead.
func (s *storm) lineOf(owner rqv1.Owner, small int) {
	name := func(i any) string { return fmt.Sprintf("%s-%v", owner[len("org:"):], i) }
	s.setBudget(name("budget"), owner, 8*small)
	for i := range small {
		s.submit(name(i), owner, 1, 1, 8)
		s.work()
		s.running(name(i), "although there is room and money")
	}
	s.submit(name("large"), owner, small, 1, 8)
	s.work()
}

// keepsFor asserts for whom money is kept.
func (s *storm) keepsFor(when string, runs ...string) {
	if keeps := s.Book.Keeps(); !slices.Equal(keeps, runs) {
		s.t.Fatalf("money is kept for %v %s, want %v\n%s", keeps, when, runs, s.story())
	}
}

// waitsForLead has a Run have waited for the lead, and asserts that money is kept for it by then.
func (s *storm) waitsForLead(run string) {
	s.during(reservationLead)
	s.work()
	s.keepsFor("once it has waited for the lead", run)
}

// Who is first in line and has been given places has its money kept when it loses them again: here its first place is
// refused by another plugin, and then nodes that other pods have.
func TestTheFirstInLineIsSoUntilItHasStarted(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Book.DrawsBy("None")
		s.fleet("d0", 2)
		s.lineOf("org:a", 2)
		s.waitsForLead("a-large")
		s.DeleteRun("a-0")
		s.work()
		s.submit("young", "org:a", 1, 1, 8)
		s.work()
		s.isRefused("young", firstInLine)
		refused := false
		s.Refuses = func(pod *corev1.Pod, _ string, at sim.Point) bool {
			run, _ := rank.RunOf(pod)
			if at != sim.AfterReserve || run != s.Runs["a-large"].UID || refused {
				return false
			}
			refused = true
			s.Rejects["d0-n01"] = "Insufficient cpu"
			return true
		}
		s.DeleteRun("a-1")
		s.work()
		if !refused || s.Runs["a-large"].Status.Phase != rqv1.RunPending {
			s.t.Fatalf("a-large has not been refused: %s\n%s", s.Runs["a-large"].Status.Message, s.story())
		}
		s.isRefused("young", firstInLine)
	})
}

// A process that begins keeps what has been kept before, for each owner, before it decides anything.
func TestWhoIsFirstInLineIsSoAfterARestart(t *testing.T) {
	tellLongStorm(t, func(s *storm) {
		s.fleet("d0", 12)
		want := []string{}
		for _, owner := range []string{"a", "b", "c", "d", "e", "f"} {
			s.lineOf(rqv1.Owner("org:"+owner), 2)
			want = append(want, owner+"-large")
		}
		for range 3 {
			s.during(reservationLead)
			s.work()
		}
		s.keepsFor("once they have waited for the lead", want...)
		s.crash()
		s.keepsFor("after a restart", want...)
	})
}

// Runs of an owner that the nodes, which change all the time, could not hold keep nobody else's from being looked at
// again.
func TestALongLineLeavesLooksToOthers(t *testing.T) {
	f := newFleetOf(t)
	f.leads = true
	for owner, most := range []int32{1600, 80} {
		b := f.budgetOf(owner)
		b.Spec.Envelopes[0].Concurrency, b.Generation = most, 2
		f.book.Budgets.SetBudget(b)
		f.book.Place(f.run(50+owner, 1, nil)[0].UID, f.now)
	}
	f.book.Place(f.run(101, 10, nil)[0].UID, f.now)
	f.selects = map[string]string{"fabric.domain": "d00"}
	for i := range 100 {
		f.book.Place(f.run(200+50*i, 200, nil)[0].UID, f.now)
	}
	sweeps := func(n int) {
		for i := range n {
			f.book.SetNode(f.node(0, 8-i%2))
			f.book.Settle(f.now)
			f.now = f.now.Add(time.Second)
		}
	}
	f.now = f.now.Add(24 * time.Hour)
	sweeps(120)
	if keeps := f.book.Keeps(); !slices.Equal(keeps, []string{"run0101"}) {
		t.Fatalf("money is kept for %v", keeps)
	}
	b := f.budgetOf(1)
	b.Spec.Envelopes[0].Concurrency, b.Generation = 72, 3
	f.book.Budgets.SetBudget(b)
	sweeps(120)
	if keeps := f.book.Keeps(); len(keeps) > 0 {
		t.Fatalf("money is kept for %v although their owner may not spend as much by now", keeps)
	}
}

// Of several envelopes together no more is kept than the first in line wants, once it waits for room alone.
func TestWhoWaitsForRoomIsKeptWhatItWantsOnce(t *testing.T) {
	for _, selector := range []map[string]string{nil, {"fabric.domain": "d0"}} {
		keptOnce(t, selector)
	}
}

func keptOnce(t *testing.T, selector map[string]string) {
	tellStorm(t, func(s *storm) {
		s.Book.DrawsBy("None")
		s.fleet("d0", 5)
		s.setBudget("b", "org:b", 64)
		s.setBudget("a", "org:a", 16)
		twice := s.Budgets["a"].DeepCopy()
		twice.Spec.Envelopes = append(twice.Spec.Envelopes, rqv1.Envelope{Name: "f", Flavor: flavor, Concurrency: 16})
		for i := range twice.Spec.Envelopes {
			twice.Spec.Envelopes[i].Selector = selector
		}
		twice.Generation = int64(s.NextUID)
		s.SetBudget(twice)
		for i := range 4 {
			s.submit(fmt.Sprintf("small-%d", i), "org:a", 1, 1, 8)
			s.work()
			s.running(fmt.Sprintf("small-%d", i), "although there is room and money")
		}
		s.submit("large", "org:a", 2, 1, 8)
		s.work()
		s.waitsForLead("large")
		s.setBudget("c", "org:c", 8)
		s.submit("c-0", "org:c", 1, 1, 8)
		s.work()
		s.running("c-0", "although there is room")
		for i := range 4 {
			if i < 3 {
				s.submit(fmt.Sprintf("b-%d", i), "org:b", 1, 1, 8)
			}
			s.DeleteRun(fmt.Sprintf("small-%d", i))
			s.work()
		}
		s.waits("large", "although its room is others'")
		s.submit("young", "org:a", 1, 1, 8)
		s.work()
		s.running("young", "although there are 16 GPUs of money that large does not want")
		s.keepsFor("while it waits for room", "large")
		s.submit("youngest", "org:a", 2, 1, 8)
		s.work()
		s.isRefused("youngest", firstInLine)
		s.DeleteRun("b-0")
		s.DeleteRun("b-1")
		s.work()
		s.running("large", "although it has room and money")
	})
}

// A rank that comes late has what is kept for the first of a line that waits for the money of the rank's group: without
// it the group may never end.
func TestALateRankHasWhatWaitsForItsGroup(t *testing.T) {
	for _, owner := range []rqv1.Owner{"org:a", "org:a:b"} {
		t.Run(string(owner), func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleet("d0", 5)
				s.setBudget("a", "org:a", 24)
				s.submitWithSpares("run00", owner, 1, 3, 8, 0, ungrouped, theirs)
				s.work()
				s.running("run00", "although all its pods are there")
				s.leaves("run00", 1)
				for range 3 {
					s.during(gangDeadline)
					s.work()
				}
				s.running("run00", "although its controller makes no more pods")
				s.submit("large", "org:a", 3, 1, 8)
				s.work()
				s.waitsForLead("large")
				s.makes("run00", 1)
				for range 3 {
					s.work()
					s.during(2 * time.Second)
				}
				if on := s.boundSlots("run00"); len(on) != 3 {
					s.t.Fatalf("pods are on %v, want 3\n%s", on, s.story())
				}
			})
		})
	}
}

// A spare of a Run that runs is not paid for from what is kept for the first in line.
func TestASpareTakesNothingFromTheFirstInLine(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 5)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run00", "org:a", 1, 1, 8, 1)
		s.work()
		s.running("run00", "although there is room and money")
		s.submit("large", "org:a", 2, 1, 8)
		s.work()
		s.waitsForLead("large")
		for _, uid := range s.SortedPods() {
			if pod := s.Pods[uid]; pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) {
				s.DeletePod(uid)
			}
		}
		for range 3 {
			s.work()
			s.during(2 * time.Second)
		}
		held := 0
		for _, l := range s.OpenLeases() {
			if l.Spec.RunRef.Name == "run00" {
				held++
			}
		}
		if held != 1 {
			s.t.Fatalf("run00 has %d Leases\n%s", held, s.story())
		}
		s.DeleteRun("run00")
		s.work()
		s.running("large", "although it has its money")
	})
}

// What has been collected for the first in line is not others' while its pods take long to be made, for as long as a
// gang may take to come together.
func TestWhatIsCollectedWaitsForThePodsOfTheFirst(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 8)
		for _, run := range []string{"run0", "run1"} {
			w.submit(run, "org:a", 1, 1, 8)
			w.settle()
		}
		w.Pass(reservationLead)
		for range 8 {
			w.Book.RefreshPromises(w.Now)
		}
		if keeps := w.Book.Keeps(); !slices.Equal(keeps, []string{"run1"}) {
			w.t.Fatalf("money is kept for %v", keeps)
		}
		w.submit("run2", "org:a", 1, 1, 8)
		w.settle()
		w.DeleteRun("run0")
		w.closeLeases()
		if w.Book.Unpaid(w.Runs["run1"].UID, w.Now) {
			w.t.Fatalf("run1 is to have pods")
		}
		w.waitsForPods("run2", "run1")
	})
}

// A group that was first in line and has come apart keeps nobody from the money for longer than a gang may take to come
// together: nobody knows whether its pods come again.
func TestWhoDoesNotComeForTheMoneyKeepsNobodyFromIt(t *testing.T) {
	for _, dies := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			s.fleet("d0", 4)
			s.setBudget("a", "org:a", 16)
			for _, name := range []string{"small-0", "small-1"} {
				s.submit(name, "org:a", 1, 1, 8)
				s.work()
			}
			s.submitWithSpares("run00", "org:a", 1, 2, 8, 0, ungrouped, theirs)
			s.work()
			s.waitsForLead("run00")
			s.leaves("run00", 1)
			s.work()
			if dies {
				s.restart()
			}
			s.DeleteRun("small-0")
			s.DeleteRun("small-1")
			s.work()
			for range 3 {
				s.during(gangDeadline)
				s.work()
			}
			s.submit("young", "org:a", 1, 1, 8)
			s.work()
			s.running("young", "although the group that was first has lost a pod")
			s.DeleteRun("young")
			s.makes("run00", 1)
			s.work()
			s.running("run00", "although it has its pods again")
		})
	}
}
