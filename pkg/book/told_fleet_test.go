package book_test

import (
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Who waits is told of the fleet that there is: also once a node has gone, when nothing frees for which anybody would
// be tried, and in pods of the size that it asks for.
func TestWhoWaitsIsToldOfTheFleetThatThereIs(t *testing.T) {
	open := func(s *rqv1.RunSpec) { s.Resources.GPUsPerPod = nil }
	tell(t, func(w *world) {
		w.sizes = map[string]int{"n1": 4, "n2": 4, "n3": 8}
		says := func(run, words string) {
			w.t.Helper()
			for range 3 {
				w.round()
				w.Pass(time.Second)
			}
			if told := w.Runs[run].Status.Message; !strings.Contains(told, words) {
				w.t.Fatalf("%s says %q, want %q", run, told, words)
			}
		}
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("fixed", "org:a", 1, 2, 8)
		w.submitWithSpares("open", "org:a", 1, 2, 8, 0, open)
		says("fixed", "at most 8 fit even when the fleet is empty")
		says("open", "at most 8 fit even when the fleet is empty")
		w.RemoveNode("n0")
		says("fixed", "no node has GPUs")
		says("open", "no node has GPUs")
		w.addNode("n1", "d0")
		w.addNode("n2", "d0")
		says("fixed", "a pod needs 8 "+flavor+" GPUs on one node and the largest node has 4")
		says("open", "at most 8 fit even when the fleet is empty")
		w.addNode("n3", "d0")
		says("fixed", "at most 8 fit even when the fleet is empty")
	})
}
