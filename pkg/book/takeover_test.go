package book_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// class has a PriorityClass have a value.
func (w *world) class(name string, value int32) {
	w.classes[name] = value
	w.Book.SetPriorityClass(name, value)
}

// of gives a Run a PriorityClass.
func of(class string) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) { s.PriorityClassName = class }
}

// rivals has a Run of high priority and others run that fill all nodes: two of the first, and pods of the others.
func (w *world) rivals(others map[string][]func(*rqv1.RunSpec), pods int) {
	w.class("high", 2000000)
	w.class("low", 1000000)
	w.guarded(2, 2, 0, of("high"), checkpointed)
	w.setBudget("a", "org:a", 64)
	for name, changes := range others {
		for range pods {
			w.addNode("node-of-"+name+string(rune('a'+len(w.Nodes))), "d0")
		}
		w.submitWithSpares(name, "org:a", 1, pods, 8, 0, changes...)
		w.settle()
		w.running(name, "although it fits")
	}
	w.Pass(10 * time.Second)
}

// lowPreempted is how a Run ends that gives way to run0.
const lowPreempted = "ended for a lost rank of Run ns/run0, which has a higher priority"

func TestALostRankTakesGPUsOfALowerPriority(t *testing.T) {
	again := "; it waits to start again from its checkpoint"
	never := "; it does not start again, since it declares no checkpoint"
	for name, c := range map[string]struct {
		low     []func(*rqv1.RunSpec)
		phase   rqv1.RunPhase
		message string
		ledger  map[string]int
	}{
		"which waits for its turn again": {[]func(*rqv1.RunSpec){of("low"), checkpointed}, rqv1.RunPending, "",
			map[string]int{"PriorityPreempt": 2}},
		"which has no checkpoint": {[]func(*rqv1.RunSpec){of("low")}, rqv1.RunFailed, lowPreempted + never,
			map[string]int{"PriorityPreempt": 2}},
		"which names no class": {[]func(*rqv1.RunSpec){checkpointed}, rqv1.RunPending, "",
			map[string]int{"PriorityPreempt": 2}},
		"which can be narrower": {[]func(*rqv1.RunSpec){of("low"), ungrouped, elastic(1, 1)}, rqv1.RunRunning,
			"shrunk to 8 GPUs; short of free GPUs to grow to 16", map[string]int{"Shrink": 1, "open Start Active": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.rivals(map[string][]func(*rqv1.RunSpec){"run1": c.low}, 2)
				before := w.podsOf("run0")
				w.Lose(w.on("run0-1"))
				w.rounds(3)
				if got := w.Runs["run1"].Status; c.phase == rqv1.RunPending && got.Message != lowPreempted+again {
					w.t.Fatalf("run1 is %s (%s)", got.Phase, got.Message)
				}
				w.settle()
				w.unchanged(before, "run0-1")
				w.expect("run0", rqv1.RunRunning, "bound 16 GPUs",
					map[string]int{"NodeFailure": 1, "open Start Active": 1, "open Swap Active": 1})
				w.expectLedger("run1", c.ledger)
				got := w.Runs["run1"].Status
				if got.Phase != c.phase || c.message != "" && got.Message != c.message {
					w.t.Fatalf("run1 is %s (%s)", got.Phase, got.Message)
				}
				w.addNode("new", "d0")
				w.settle()
				if c.phase == rqv1.RunPending {
					w.running("run1", "although there is room again")
				}
			})
		})
	}
}

// A rank that cannot be placed is no reason to end one of the same priority, of another owner, or elsewhere.
func TestALostRankLeavesOthersAlone(t *testing.T) {
	for name, c := range map[string]struct {
		owner  rqv1.Owner
		class  string
		domain string
	}{
		"of the same priority": {"org:a", "high", "d0"},
		"of another owner":     {"org:b", "low", "d0"},
		"in another domain":    {"org:a", "low", "d1"},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.class("high", 2000000)
				w.class("low", 1000000)
				w.guarded(2, 2, 0, of("high"))
				w.setBudget("a", "org:a", 64)
				w.addNode("other", c.domain)
				w.submitWithSpares("run1", c.owner, 1, 1, 8, 0, of(c.class), checkpointed)
				w.settle()
				w.Pass(10 * time.Second)
				w.Lose(w.on("run0-1"))
				w.settle()
				if w.Runs["run0"].Status.Phase != rqv1.RunFailed {
					w.t.Fatalf("run0 is %s (%s)", w.Runs["run0"].Status.Phase, w.Runs["run0"].Status.Message)
				}
				w.expect("run1", rqv1.RunRunning, "bound 8 GPUs", map[string]int{"open Start Active": 1})
			})
		})
	}
}

// The order is: a spare, free GPUs, then Runs of lower priority, of which the lowest gives, then a narrower width.
func TestWhoGivesToALostRank(t *testing.T) {
	t.Run("a spare", func(t *testing.T) {
		tell(t, func(w *world) {
			w.class("high", 2)
			w.guarded(4, 2, 1, of("high"))
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run1", "org:a", 1, 1, 8, 0)
			w.settle()
			w.Pass(10 * time.Second)
			w.Lose(w.on("run0-1"))
			w.settle()
			w.expect("run0", rqv1.RunRunning, swapped,
				map[string]int{"NodeFailure": 1, "Swap": 1, "open Start Active": 1, "open Swap Active": 1})
			w.expectLedger("run1", map[string]int{"open Start Active": 1})
		})
	})
	t.Run("the lowest priority", func(t *testing.T) {
		tell(t, func(w *world) {
			w.class("middle", 1500000)
			w.rivals(map[string][]func(*rqv1.RunSpec){"run1": {of("middle")}, "run2": {of("low")}, "run3": {of("high")}}, 1)
			w.Lose(w.on("run0-1"))
			w.settle()
			w.running("run0", "although there are GPUs of lower priority")
			w.expectLedger("run1", map[string]int{"open Start Active": 1})
			w.expectLedger("run2", map[string]int{"PriorityPreempt": 1})
			w.expectLedger("run3", map[string]int{"open Start Active": 1})
		})
	})
	t.Run("before it is narrower itself", func(t *testing.T) {
		tell(t, func(w *world) {
			w.class("high", 2)
			w.guarded(2, 2, 0, of("high"), ungrouped, elastic(1, 1))
			w.setBudget("a", "org:a", 64)
			w.addNode("other", "d0")
			w.submitWithSpares("run1", "org:a", 1, 1, 8, 0)
			w.settle()
			w.Pass(10 * time.Second)
			w.Lose(w.on("run0-1"))
			w.settle()
			w.expectLedger("run0", map[string]int{"NodeFailure": 1, "open Start Active": 1, "open Swap Active": 1})
			w.expectLedger("run1", map[string]int{"PriorityPreempt": 1})
		})
	})
}

// A process that takes over in the middle goes on with what has been begun, and ends nobody else.
func TestALostRankTakesGPUsAcrossARestart(t *testing.T) {
	for passes := range 6 {
		tell(t, func(w *world) {
			w.rivals(map[string][]func(*rqv1.RunSpec){"run1": {of("low"), checkpointed}, "run2": {of("low"), checkpointed}}, 1)
			w.Lose(w.on("run0-1"))
			w.rounds(1)
			for range passes {
				for _, name := range w.Names() {
					w.reconcile(name)
				}
				for _, uid := range w.SortedPods() {
					w.cycle(uid)
				}
			}
			w.crash()
			w.settle()
			w.running("run0", "although there are GPUs of lower priority")
			ended := w.ledger("run1")["PriorityPreempt"] + w.ledger("run2")["PriorityPreempt"]
			if ended != 1 {
				w.t.Fatalf("%d Runs ended for one rank: %v, %v", ended, w.ledger("run1"), w.ledger("run2"))
			}
			w.checkSettled()
		})
	}
}

// Nobody ends for a rank that another rule keeps from where it would go (R31): the lost rank's Run goes on as it would
// without priorities.
func TestNobodyGivesGPUsToARankThatOtherRulesKeepOff(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.rivals(map[string][]func(*rqv1.RunSpec){"run1": {of("low")}}, 1)
		w.Rejects[w.on("run1-0")] = "node(s) had volume node affinity conflict"
		w.Lose(w.on("run0-1"))
		w.rounds(20)
		w.Pass(time.Minute)
		w.settle()
		if got := w.Runs["run0"].Status; got.Phase != rqv1.RunPending {
			w.t.Fatalf("run0 is %s (%s)", got.Phase, got.Message)
		}
		w.expectLedger("run1", map[string]int{"open Start Active": 1})
	})
	tell(t, func(w *world) {
		w.asks(true)
		w.rivals(map[string][]func(*rqv1.RunSpec){"run1": {of("low")}, "run2": {of("low")}}, 1)
		w.Rejects[w.on("run1-0")] = "node(s) had volume node affinity conflict"
		w.Lose(w.on("run0-1"))
		w.settle()
		w.running("run0", "although run2 could give way")
		w.expectLedger("run1", map[string]int{"open Start Active": 1})
		w.expectLedger("run2", map[string]int{"PriorityPreempt": 1})
	})
}

// A rank for which others have been ended, and which kube-scheduler refuses there, waits as any other without room: it
// is not to end one Run after the other. A rank that is lost later is another loss.
func TestALostRankTakesGPUsOnce(t *testing.T) {
	tell(t, func(w *world) {
		w.rivals(map[string][]func(*rqv1.RunSpec){"run1": {of("low")}, "run2": {of("low")}, "run3": {of("low")}}, 1)
		refuses := []string{w.on("run1-0"), w.on("run2-0"), w.on("run3-0")}
		for _, node := range refuses {
			w.Rejects[node] = "node(s) had volume node affinity conflict"
		}
		ended := func() (n int) {
			for _, name := range []string{"run1", "run2", "run3"} {
				n += w.ledger(name)["PriorityPreempt"]
			}
			return n
		}
		w.Lose(w.on("run0-1"))
		w.rounds(20)
		for range 8 {
			w.Pass(15 * time.Second)
			w.rounds(20)
		}
		if n := ended(); n != 1 {
			w.t.Fatalf("%d Runs were ended for one rank, want 1", n)
		}
	})
}

// What free nodes say of a rank that has just been lost may pass, however long another one has waited that leads.
func TestARankThatHasJustBeenLostWaitsForFreeNodes(t *testing.T) {
	tell(t, func(w *world) {
		w.rivals(map[string][]func(*rqv1.RunSpec){"low": {of("low")}}, 2)
		for _, free := range []string{"free", "free2"} {
			w.addNode(free, "d0")
			w.Rejects[free] = "node(s) had volume node affinity conflict"
		}
		node := w.leavesCordoned("run0-0")
		w.rounds(20)
		w.awaits("run0", node)
		w.Lose(w.on("run0-1"))
		w.rounds(6)
		w.running("low", "although the rejection may pass")
		w.rounds(15)
		w.expectLedger("low", map[string]int{"PriorityPreempt": 2})
	})
}

// A Run of higher priority that is drawn is paid for by its owner's others, also where that is for one of these;
// without any that would do it ends as any.
func TestADrawnRunIsPaidForByItsOwnersOthers(t *testing.T) {
	for name, c := range map[string]struct {
		starter rqv1.Owner
		others  int
		ends    string
	}{
		"for another owner":             {"org:b", 1, "low0"},
		"for one of its own":            {"org:a", 1, "low0"},
		"for another owner, by itself":  {"org:b", 0, "high0"},
		"for one of its own, by itself": {"org:a", 0, "high0"},
	} {
		t.Run(name, func(t *testing.T) {
			tellLongStorm(t, func(s *storm) {
				s.class("high", 2)
				s.class("low", 1)
				s.addNode("n0", "d0")
				s.setBudget("a", "org:a", 64)
				s.setBudget("b", "org:b", 64)
				s.submitWithSpares("high0", "org:a", 1, 1, 8, 0, of("high"), checkpointed)
				if c.others > 0 {
					s.addNode("n1", "d0")
					s.submitWithSpares("low0", "org:a", 1, 1, 8, 0, of("low"), checkpointed)
				}
				s.work()
				s.during(10 * time.Minute)
				s.submitWithSpares("next", c.starter, 1, 1, 8, 0, of("low"))
				s.work()
				s.during(time.Second)
				s.work()
				if risks := s.Runs["high0"].Status.AtRisk; len(risks) > 0 != (c.ends == "high0") {
					s.t.Fatalf("high0 is said to be at risk by %v", risks)
				}
				for i := 0; i < 40 && s.Runs["next"].Status.Phase == rqv1.RunPending; i++ {
					s.during(5 * time.Second)
					s.work()
				}
				s.running("next", "although its turn has come")
				for _, name := range []string{"high0", "low0"} {
					if got := s.ledger(name)["RandomPreempt"] > 0; got != (name == c.ends) {
						s.t.Fatalf("%s was ended by lottery: %v", name, got)
					}
				}
				for _, r := range s.Reservations {
					if found := resolver.Verify(r); r.Status.ActivatedAt != nil && len(found) > 0 {
						s.t.Fatalf("the record of %s is not valid: %q", r.Name, found)
					}
				}
			})
		})
	}
}
