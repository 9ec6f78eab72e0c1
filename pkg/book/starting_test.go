package book_test

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestARunThatIsStartingIsInTheWayOfAPromiseAndDoesNotUndoIt(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		submit := func(name string) {
			w.submit(name, "org:a", 1, 1, 8)
			run := w.runs[name].DeepCopy()
			run.Status.Phase = rqv1.RunPending // the API's default
			w.runs[name] = run
			w.book.SetRun(run)
			w.reconcile(name)
			w.act()
		}
		submit("run0")
		w.cycle(w.pod("run0-0")) // it has its place, and has not started
		submit("run1")
		waits := w.pod("run1-0")
		w.cycle(waits)
		w.book.Promise(waits, w.now)
		p := w.book.Prospect(w.runs["run1"].UID)
		if p.Promise == nil || !p.Promise.Cuts || len(p.Promise.Conflicts) != 1 || p.Promise.Conflicts[0].Run.Name != "run0" {
			w.t.Fatalf("run1 is promised %+v; it is refused: %v", p.Promise, p.Refusal)
		}
		w.settle()
	})
}
