package book_test

import (
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

const othersRule = "node(s) didn't satisfy existing pods anti-affinity rules"

// What keeps pods off a node may be a rule of another pod that is there, whatever their own are: shards stay where a
// start is turned down that would have them leave.
func TestShardsStayWhereAnothersRuleTurnsAStartDown(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.asks(true)
		s.fleet("d0", 1)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		s.sweep("shards", "org:b", 4, 1)
		s.work()
		s.during(time.Minute)
		s.Rejects["d0-n00"] = othersRule
		s.submit("wants", "org:a", 1, 1, 8)
		for range 20 {
			s.work()
			s.during(10 * time.Second)
			if n := s.shards("shards")["d0-n00"]; n != 4 {
				s.t.Fatalf("%d shards run at %s", n, s.Now)
			}
		}
		clear(s.Rejects)
		s.later(6 * time.Minute)
		s.running("wants", "although its node accepts it")
	})
}

// apart has the Jobs of a JobSet that a Run stands for have domains of a label for themselves.
func (w *world) apart(run, key string) {
	is := w.Runs[run].DeepCopy()
	is.Annotations = map[string]string{rqv1.AnnotationExclusive: key}
	w.SetRun(is)
}

// A Run of a JobSet that asks for node pools to itself, where groups stay within fabric domains, is told so while
// another rule keeps it from its nodes, and is not where groups stay within what it asks for. Nor is a Run that is no
// JobSet's.
func TestADomainThatGroupsDoNotHaveIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		key    string
		source func(*rqv1.RunSpec)
		told   bool
	}{
		"another":         {"pool", theirs, true},
		"the same":        {"fabric.domain", theirs, false},
		"none":            {"no key", theirs, false},
		"of a Run's own":  {"pool", func(*rqv1.RunSpec) {}, false},
		"one is none":     {"pool,no key", theirs, false},
		"that is not set": {"", theirs, false},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.addNode("n0", "d0")
				w.setBudget("a", "org:a", 64)
				w.Rejects["n0"] = othersRule
				w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, test.source)
				w.apart("run0", test.key)
				w.settle()
				r := w.Book.Refusal(w.Runs["run0"].UID)
				if r == nil || strings.Contains(r.Message, "set fabricLevel to "+test.key) != test.told {
					w.t.Fatalf("with domains of %s it is refused with %+v", test.key, r)
				}
			})
		})
	}
}

// It is told so for as long as that may be why, also where GPUs are short beside the nodes that it may not use, and it
// has been worked out since when it starts.
func TestADomainThatGroupsDoNotHaveStaysTold(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0", "n1")
		s.submit("run0", "org:b", 1, 1, 8)
		s.work()
		idle := map[string]string{"n0": "n1", "n1": "n0"}[s.runsOn("run0")]
		s.maintains(idle, time.Hour, time.Hour)
		s.submitWithSpares("run1", "org:a", 1, 2, 8, 0, theirs)
		s.apart("run1", "pool")
		s.work()
		for range 4 {
			r := s.Book.Refusal(s.Runs["run1"].UID)
			if r == nil || r.Reason != plan.InsufficientGPUs || !strings.Contains(r.Message, idle+": maintenance from ") ||
				strings.Count(r.Message, "set fabricLevel to pool") != 1 {
				s.t.Fatalf("it is refused with %+v", r)
			}
			s.during(31 * time.Second)
			s.work()
		}
	})
}

// A spare stands by, and shards over it stay, where another's rule keeps its rank from its place.
func TestASpareStaysWhereAnothersRuleTurnsItsRankDown(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.guarded(4, 2, 1)
		w.sweep("run1", "org:b", 4, 2)
		w.settle()
		spare := w.on("run0-s0")
		shards := w.shards("run1")[spare]
		w.Rejects[spare] = othersRule
		w.Lose(w.on("run0-0"))
		w.settle()
		w.running("run0", "although a node is free")
		if w.on("run0-s0") != spare || w.ledger("run0")["open Start Spare"] != 1 {
			w.t.Fatalf("the spare made room for nobody: %v", w.ledger("run0"))
		}
		if n := w.shards("run1")[spare]; n != shards {
			w.t.Fatalf("%d of %d shards over the spare are left", n, shards)
		}
		w.checkSettled()
	})
}
