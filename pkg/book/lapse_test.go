package book_test

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// What happens while other rules are asked about a start makes their answer that to another question: the Run starts
// with what it is given then.
func TestAStartChangesWhileRulesAreAsked(t *testing.T) {
	for name, happens := range map[string]func(w *world){
		"its leader is deleted": func(w *world) { w.DeletePod(w.pod("run0-0")) },
		"its nodes are lost":    func(w *world) { w.Lose("d0-n00", "d0-n01") },
		"it is deleted":         func(w *world) { w.DeleteRun("run0") },
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.Cluster.Rejected = w.turnedDown
				w.asks(true)
				w.fleet("d0", 5)
				w.setBudget("a", "org:a", 64)
				asked := false
				w.Meanwhile = func() { asked = true; happens(w) }
				w.submitWithSpares("run0", "org:a", 1, 3, 2, 0, apart)
				w.settle()
				if !asked {
					w.t.Fatal("nobody was asked")
				}
				if w.Runs["run0"] == nil {
					w.submitWithSpares("run1", "org:a", 1, 5, 8, 0)
					w.settle()
					w.running("run1", "although the other is gone")
					return
				}
				w.running("run0", "although there is a node for each pod")
				w.checkSettled()
			})
		})
	}
}

// What happens while other rules are asked about a decision takes it back, if it is about places that the Run does not
// have any more: nobody is cut for those.
func TestADecisionChangesWhileRulesAreAsked(t *testing.T) {
	for name, happens := range map[string]func(s *storm){
		"its leader is deleted": func(s *storm) { s.DeletePod(s.pod("wants-0")) },
		"it is deleted":         func(s *storm) { s.DeleteRun("wants") },
		"its nodes are lost":    func(s *storm) { s.Lose("d0-n00") },
		"the other ends":        func(s *storm) { s.DeleteRun("holder") },
		"the scheduler dies":    (*storm).crash,
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.asks(true)
				s.standoff("1", "1")
				asked := false
				s.work()
				s.Meanwhile = func() { asked = true; s.disturb(); happens(s) }
				s.due()
				for range 12 {
					s.work()
					s.during(noticePeriod)
				}
				if !asked {
					s.t.Fatal("nobody was asked")
				}
				holder, wants := s.Runs["holder"], s.Runs["wants"]
				switch {
				case s.Lost("d0-n00"):
				case wants == nil && holder.Status.Phase != rqv1.RunRunning:
					s.t.Fatalf("the holder is %s, and nobody wants its room", holder.Status.Phase)
				case wants != nil:
					s.running("wants", "although the other may be cut for it")
				}
			})
		})
	}
}
