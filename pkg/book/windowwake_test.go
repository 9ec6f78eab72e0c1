package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// No Lease that ends opens a window: whoever waits for one is asked again when Budgets or windows change, and not
// before.
func TestALeaseThatEndsOpensNoWindow(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 16)
		w.submit("run0", "org:a", 1, 1, 8)
		w.settle()
		w.running("run0", "at first")
		opens := metav1.NewTime(w.Now.Add(24 * time.Hour))
		b := w.Budgets["a"].DeepCopy()
		b.Spec.Envelopes[0].Start, b.Generation = &opens, b.Generation+1000
		w.SetBudget(b)
		w.submit("run1", "org:a", 1, 1, 8)
		w.sweep("run2", "org:a", 4, 2)
		w.submit("run3", "org:b", 1, 1, 8)
		w.settle()
		waiting := map[string]plan.Reason{"run1": plan.WindowClosed, "run2": plan.WindowClosed, "run3": plan.NoBudget}
		for run, reason := range waiting {
			w.refusedWith(run, reason)
		}
		w.Book.TakeActions()
		asked := func() []string {
			var out []string
			for _, run := range w.Book.TakeActions().Reconcile {
				if waiting[run.Name] != "" {
					out = append(out, run.Name)
				}
			}
			return out
		}
		w.DeleteRun("run0")
		for _, lease := range w.OpenLeases() {
			w.Book.SetLease(ended(lease, w.Now))
		}
		if got := asked(); len(got) > 0 {
			w.t.Fatalf("%v are asked again because a Lease has ended", got)
		}
		w.Book.WindowPassed()
		if got := asked(); len(got) != len(waiting) {
			w.t.Fatalf("%v are asked again when a window has opened", got)
		}
	})
}

// ended returns a Lease as it is once its pod was deleted.
func ended(lease *rqv1.Lease, at time.Time) *rqv1.Lease {
	closed := lease.DeepCopy()
	closed.Status = rqv1.LeaseStatus{Closed: true, Ended: &metav1.MicroTime{Time: at}, ClosureReason: rqv1.ClosedDeleted}
	return closed
}
