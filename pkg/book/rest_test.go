package book_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// Runs that have ended are gone through by nobody, however many there are, nor after a restart; until they are deleted
// the book answers what it is asked of them.
func TestNobodyGoesThroughRunsThatHaveEnded(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		gone := func(want int) {
			w.t.Helper()
			if n := w.Book.GoneThrough(); n != want {
				w.t.Fatalf("%d gangs are gone through, want %d", n, want)
			}
		}
		for i := range 5 {
			name := fmt.Sprintf("run%d", i)
			w.submit(name, "org:a", 1, 2, 4)
			w.settle()
			gone(1)
			for _, pod := range w.PodsOf(name) {
				w.EndPod(pod.UID, corev1.PodSucceeded)
			}
			w.settle()
			w.is(name, "Ended")
			gone(0)
		}
		w.crash()
		w.settle()
		gone(0)
		look, known := w.Book.Look(book.Objects{Run: w.Runs["run0"]})
		if !known || look.Demand.Pods() != 2 || !look.AtRest {
			w.t.Fatalf("of a Run that has ended it is known: %v, %+v", known, look)
		}
		for i := range 5 {
			w.DeleteRun(fmt.Sprintf("run%d", i))
		}
		w.settle()
		if remains := w.Book.Remains(); len(remains) > 0 {
			w.t.Fatalf("when all are deleted there remains: %v", remains)
		}
	})
}

// A Run that has failed has pods that end yet. Its Leases close when they do, for what they were, whoever decides by
// then; only after that is nothing of it left.
func TestARunIsNotAtRestBeforeItsPodsAreGone(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		tellStorm(t, func(s *storm) {
			s.addNode("n0", "d0")
			s.setBudget("a", "org:a", 64)
			s.submitWithSpares("run0", "org:a", 1, 3, 2, 0, opportunistic, patient(60))
			s.work()
			s.during(time.Second)
			s.work()
			pods := s.PodsOf("run0")
			if len(pods) != 3 {
				s.t.Fatalf("%d shards", len(pods))
			}
			s.EndPod(pods[0].UID, corev1.PodFailed)
			s.work()
			if phase := s.Runs["run0"].Status.Phase; phase != rqv1.RunFailed {
				s.t.Fatalf("run0 is %s", phase)
			}
			if crashes {
				s.restart()
				s.work()
			}
			if n := s.Book.GoneThrough(); n != 1 || len(s.OpenLeases()) != 2 {
				s.t.Fatalf("%d gangs are gone through, and %d Leases are open", n, len(s.OpenLeases()))
			}
			look, _ := s.Book.Look(book.Objects{Run: s.Runs["run0"]})
			if look.AtRest || look.Demand.Pods() != 3 {
				s.t.Fatalf("of a Run whose pods end it is known: %+v", look)
			}
			s.DeletePod(pods[1].UID)
			s.DeletePod(pods[2].UID)
			s.work()
			reasons := map[rqv1.ClosureReason]int{}
			for _, lease := range s.Leases {
				reasons[lease.Status.ClosureReason]++
			}
			if n := s.Book.GoneThrough(); n != 0 || reasons[rqv1.ClosedFailed] != 3 {
				s.t.Fatalf("%d gangs are gone through, and Leases were closed for %v", n, reasons)
			}
		})
	}
}
