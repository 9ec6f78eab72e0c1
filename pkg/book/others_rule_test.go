package book_test

import (
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
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

// A Run of a JobSet that asks for node pools to itself, where groups stay within fabric domains, is told so while
// another rule keeps it from its nodes, and is not where groups stay within what it asks for.
func TestADomainThatGroupsDoNotHaveIsTold(t *testing.T) {
	for key, told := range map[string]bool{"pool": true, "fabric.domain": false, "no key": false} {
		tell(t, func(w *world) {
			w.addNode("n0", "d0")
			w.setBudget("a", "org:a", 64)
			w.Rejects["n0"] = othersRule
			w.submit("run0", "org:a", 1, 1, 8)
			run := w.Runs["run0"].DeepCopy()
			run.Annotations = map[string]string{rqv1.AnnotationExclusive: key}
			w.SetRun(run)
			w.settle()
			r := w.Book.Refusal(run.UID)
			if r == nil || strings.Contains(r.Message, "set fabricLevel to "+key) != told {
				w.t.Fatalf("with domains of %s it is refused with %+v", key, r)
			}
		})
	}
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
