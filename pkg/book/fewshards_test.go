package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// A Run of shards that nobody can pay for has no pod, and begins when somebody can.
func TestShardsThatNobodyCanPayForAreNotMade(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.sweep("run0", "org:a", 8, 2)
		w.settle()
		w.refusedWith("run0", plan.NoBudget)
		w.crash()
		w.settle()
		w.refusedWith("run0", plan.NoBudget)
		w.setBudget("a", "org:a", 2)
		w.settle()
		w.expect("run0", "Running", "8 of 8 shards run", map[string]int{"open Start Borrowed": 8})
	})
}

// Who pays may do so from an instant on.
func TestShardsAreMadeWhenAWindowOpens(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 8)
		opens := metav1.NewTime(w.Now.Add(24 * time.Hour))
		b := w.Budgets["a"].DeepCopy()
		b.Spec.Envelopes[0].Start, b.Generation = &opens, b.Generation+1000
		w.SetBudget(b)
		w.sweep("run0", "org:a", 4, 2)
		w.settle()
		w.refusedWith("run0", plan.WindowClosed)
		w.Pass(opens.Sub(w.Now))
		w.Book.WindowPassed()
		w.settle()
		w.expect("run0", "Running", "4 of 4 shards run", map[string]int{"open Start Borrowed": 4})
	})
}

// refusedWith asserts that a Run waits for a reason, without a pod.
func (w *world) refusedWith(run string, reason plan.Reason) {
	w.t.Helper()
	if refusal := w.Book.Refusal(w.Runs[run].UID); refusal == nil || refusal.Reason != reason {
		w.t.Fatalf("%s is refused with %+v, want %s", run, refusal, reason)
	}
	if pods := w.podsOf(run); len(pods) > 0 {
		w.t.Fatalf("%s has pods %v although nobody can pay for it", run, pods)
	}
}

// A Run of shards has one pod that waits, beside those that run, whatever it asks for. The older one has what there is.
func TestFewShardsWait(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 3, 4)
		w.settle()
		w.sweep("run1", "org:a", 1000, 2)
		w.sweep("run2", "org:a", 1000, 2)
		w.settle()
		w.expect("run2", "Pending", "0 of 1000 shards run; the others wait: no idle GPUs fit a shard",
			map[string]int{})
		for run, want := range map[string]int{"run1": 1, "run2": 1} {
			waiting := 0
			for _, pod := range w.Pods {
				if pod.Labels["rq.davidlangworthy.io/run"] == run && pod.Status.Phase != corev1.PodRunning {
					waiting++
				}
			}
			if waiting != want {
				w.t.Fatalf("%d shards of %s wait, want %d; %v run", waiting, run, want, w.shards(run))
			}
		}
	})
}
