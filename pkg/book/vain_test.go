package book_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// TestPlacesHeldInVainAreNotHeldAgainAtOnce: a group whose first pod is never ready holds places for the others, which
// nobody pays for, a part of the time only, and a smaller one each time, whoever schedules by then (R46). Others have
// the GPUs meanwhile, and are told nothing of it. It is the same whether the attempt has taken too long, or its first
// pod has gone before.
func TestPlacesHeldInVainAreNotHeldAgainAtOnce(t *testing.T) {
	for what, ends := range map[string]func(w *world, first types.UID){
		"it takes too long":      (*world).takesTooLong,
		"it is deleted in time":  func(w *world, first types.UID) { w.passAndDelete(first, gangDeadline-5*time.Second) },
		"it is deleted early on": func(w *world, first types.UID) { w.passAndDelete(first, 40*time.Second) },
	} {
		tell(t, func(w *world) {
			first := w.startSlowly()
			for again := range 3 {
				ends(w, first)
				w.restsAfter(again+1, what)
				w.Pass(gangDeadline + time.Second)
				w.rounds(6)
				if held := w.heldGPUs(); held != 32 {
					t.Fatalf("%s: %d GPUs are held although it has rested: %s", what, held, w.Runs["run00"].Status.Message)
				}
				first = w.firstOf("run00")
			}
			w.SetReady(first, true)
			w.rounds(6)
			w.running("run00", "although all its pods are there")
			w.settle()
			w.checkSettled()
		})
	}
}

// takesTooLong waits until a group that is not ready is started anew.
func (w *world) takesTooLong(first types.UID) {
	began := w.Now
	for w.Pods[first] != nil {
		w.Pass(gangDeadline / 2)
		w.rounds(2)
		w.check()
		if w.Now.Sub(began) > (rank.LongestStart+1)*gangDeadline {
			w.t.Fatalf("it holds %d GPUs after %s", w.heldGPUs(), w.Now.Sub(began))
		}
	}
}

// passAndDelete deletes a pod after a time.
func (w *world) passAndDelete(pod types.UID, after time.Duration) {
	w.Pass(after)
	w.rounds(2)
	w.DeletePod(pod)
	w.rounds(2)
}

// restsAfter asserts that run00 holds nothing after so many attempts, for as long as it is to rest but gangDeadline,
// whoever schedules by then.
func (w *world) restsAfter(attempts int, what string) {
	ended := w.Now
	w.crash()
	rest := gangDeadline << attempts
	for w.Now.Sub(ended) < rest-gangDeadline {
		w.rounds(2)
		is := w.Runs["run00"].Status
		if held := w.heldGPUs(); held != 0 {
			w.t.Fatalf("%s: %d GPUs are held %s after attempt %d was in vain: %s", what, held, w.Now.Sub(ended), attempts,
				is.Message)
		}
		if r := is.Refusal; !strings.Contains(is.Message, "in vain") || r == nil || r.Reason != "HeldInVain" {
			w.t.Fatalf("%s: it says: %s, because of %+v", what, is.Message, r)
		}
		w.Pass(gangDeadline / 2)
	}
}

// TestAFirstPodThatGoesAtOnceHasHeldNothing: places that were held for seconds only are held again at once.
func TestAFirstPodThatGoesAtOnceHasHeldNothing(t *testing.T) {
	tell(t, func(w *world) {
		w.passAndDelete(w.startSlowly(), 10*time.Second)
		w.rounds(4)
		if held := w.heldGPUs(); held != 32 || w.Runs["run00"].Status.HeldInVain != nil {
			t.Errorf("%d GPUs are held: %s", held, w.Runs["run00"].Status.Message)
		}
	})
}

// TestPlacesKeptInVainAreNotKeptAgainAtOnce: who deletes a pod of a running group again and again, and has no other
// made in time, is not to have its place from the second time on (R42, R46), whoever schedules by then.
func TestPlacesKeptInVainAreNotKeptAgainAtOnce(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		lose := func(what string, want int64) {
			w.leaves("run00", 1)
			w.rounds(3)
			w.Pass(2 * time.Second)
			w.rounds(2)
			if held := w.heldGPUs(); held != want {
				t.Fatalf("%s: %d GPUs are held, want %d", what, held, want)
			}
			w.Pass(gangDeadline)
			w.rounds(3)
			if held := w.heldGPUs(); held != 24 {
				t.Fatalf("%s: %d GPUs are held in the end", what, held)
			}
			delete(w.controllers.less, slot{w.Runs["run00"].UID, 1})
			w.rounds(3)
			if on := w.boundSlots("run00"); len(on) != 4 {
				t.Fatalf("%s: its pods are on %v", what, on)
			}
		}
		lose("the first time", 32)
		lose("the second time", 32)
		w.crash()
		lose("while it rests", 24)
		w.Pass(4 * gangDeadline)
		lose("when it has rested", 32)
		w.running("run00", "although all its pods are there")
		w.settle()
		w.checkSettled()
	})
}

// TestAGroupThatIsMadeAnewBeginsNoNewCount: who deletes a group that holds places in vain, or suspends it, and makes it
// anew has it rest all the same, the longer the more often that has happened, whoever schedules by then (R46). The
// count is forgotten in time.
func TestAGroupThatIsMadeAnewBeginsNoNewCount(t *testing.T) {
	for what, ends := range map[string]func(w *world, first types.UID){
		"with its pod after": func(w *world, first types.UID) {
			w.ForgetRun("run00")
			w.DeletePod(first)
		},
		"with its pod before": func(w *world, first types.UID) {
			w.DeletePod(first)
			w.DeleteRun("run00")
		},
		"with its pod counted before": func(w *world, first types.UID) {
			w.DeletePod(first)
			if err := w.Reconcile("run00"); err != nil {
				t.Error(err)
			}
			w.DeleteRun("run00")
		},
		"while it rests": func(w *world, first types.UID) {
			w.DeletePod(first)
			w.rounds(2)
			w.DeleteRun("run00")
		},
	} {
		tell(t, func(w *world) {
			first := w.startSlowly()
			for again := range 3 {
				w.Pass(gangDeadline - 5*time.Second)
				w.rounds(2)
				ends(w, first)
				w.rounds(2)
				w.tellBudget("a")
				w.submitWithSpares("run00", "org:a", 1, 4, 8, 0, ungrouped, lateFirst)
				w.restsAfter(again+1, what)
				w.Pass(gangDeadline + time.Second)
				w.rounds(6)
				if held := w.heldGPUs(); held != 32 {
					t.Fatalf("%s: %d GPUs are held although it has rested: %s", what, held, w.Runs["run00"].Status.Message)
				}
				first = w.firstOf("run00")
			}
			w.DeleteRun("run00")
			w.rounds(2)
			w.Pass(8 * time.Hour)
			if w.tellBudget("a"); w.Budgets["a"].Status.HeldInVain != nil {
				t.Errorf("%s: it says for ever: %+v", what, w.Budgets["a"].Status.HeldInVain)
			}
		})
	}
}

// TestAGroupThatIsDeletedWithAllItsPodsHasHeldNothingInVain: all of them had been made, though some had not come to
// their places yet.
func TestAGroupThatIsDeletedWithAllItsPodsHasHeldNothingInVain(t *testing.T) {
	for missing, want := range []int{0, 1} {
		tell(t, func(w *world) {
			w.startSlowly()
			w.Pass(gangDeadline / 2)
			w.controllers.inOrder = false
			w.controlled(w.Runs["run00"], 3-missing)
			if err := w.Reconcile("run00"); err != nil { // they get their ranks
				t.Error(err)
			}
			w.Pass(5 * time.Second)
			w.DeleteRun("run00")
			w.rounds(2)
			w.tellBudget("a")
			if held := w.Budgets["a"].Status.HeldInVain; len(held) != want {
				t.Errorf("without %d of its pods it has held places in vain: %+v", missing, held)
			}
		})
	}
}

// tellBudget has a Budget's status say what the book knows.
func (w *world) tellBudget(name string) {
	told := w.Budgets[name].DeepCopy()
	report, _ := w.Book.Budgets.BudgetReport(told, w.Now)
	told.Status = report.Status
	w.SetBudget(told)
}

// TestAPlaceThatWasPaidForASecondWasKeptInVain: who deletes a pod of a running group again and again, has the next one
// made at the last moment, and deletes that after a second, is not to have its place from the second time on either
// (R46), whoever schedules by then. One that has run for longer than its place was kept has it again.
func TestAPlaceThatWasPaidForASecondWasKeptInVain(t *testing.T) {
	tell(t, func(w *world) {
		w.startTheirs()
		uid := w.Runs["run00"].UID
		lose := func(what string, want int64) {
			w.leaves("run00", 1)
			w.rounds(3)
			w.Pass(2 * time.Second)
			w.rounds(2)
			if held := w.heldGPUs(); held != want {
				t.Fatalf("%s: %d GPUs are held, want %d: %+v", what, held, want, w.Runs["run00"].Status.HeldInVain)
			}
			w.Pass(gangDeadline - 10*time.Second)
			w.rounds(2)
			delete(w.controllers.less, slot{uid, 1})
			w.rounds(3)
			if on := w.boundSlots("run00"); len(on) != 4 {
				t.Fatalf("%s: its pods are on %v", what, on)
			}
			w.Pass(time.Second)
		}
		lose("the first time", 32)
		lose("the second time, after a second", 32)
		w.crash()
		lose("the third time, after a second", 24)
		w.Pass(8 * gangDeadline)
		w.rounds(2)
		lose("when it has rested and run", 32)
	})
}

// TestARestThatOutlivesAStartEnds: a group starts while it rests, since all its pods have been made, and loses a node
// before that time is over. It waits with its first pod until then, and no longer (R46), whoever schedules by then.
func TestARestThatOutlivesAStartEnds(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		tell(t, func(w *world) {
			first := w.startSlowly()
			for w.Pods[first] != nil {
				w.Pass(gangDeadline / 2)
				w.rounds(2)
			}
			w.rounds(2)
			until := w.Runs["run00"].Status.HeldInVain.Until
			for n := 1; n < 4; n++ {
				w.Make(sim.Foreign{Run: w.Runs["run00"], Slot: n})
			}
			w.Slow = false
			w.rounds(6)
			w.running("run00", "although all its pods are there")
			w.Slow = true
			w.Lose(w.boundSlots("run00")[3])
			w.rounds(6)
			w.waits("run00", "on three nodes")
			w.addNode("n9", "d0")
			if crashes {
				w.crash()
			}
			w.rounds(2)
			if h := w.Runs["run00"].Status.HeldInVain; !h.Rests(w.Now) || !h.Until.Equal(&until) || w.heldGPUs() != 0 {
				t.Fatalf("it holds %d GPUs and rests: %+v", w.heldGPUs(), h)
			}
			w.Pass(until.Sub(w.Now) + time.Second)
			w.rounds(6)
			if held := w.heldGPUs(); held != 32 {
				t.Fatalf("%d GPUs are held although it has rested: %s", held, w.Runs["run00"].Status.Message)
			}
		})
	}
}
