package book_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// More ranks fail at once than a status tells of, and their pods stay: it is written once, and not again and again.
func TestMoreRanksFailThanAreToldOf(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 20)
		w.setBudget("a", "org:a", 160)
		w.submit("run0", "org:a", 1, 20, 8)
		w.settle()
		for i := range 20 {
			w.EndPod(w.pod(fmt.Sprintf("run0-%d", i)), corev1.PodFailed)
		}
		w.settle()
		told := w.Runs["run0"].Status.Deaths
		if len(told) != rqv1.MostDeaths {
			w.t.Fatalf("%d deaths are told", len(told))
		}
		w.Pass(time.Second)
		w.reconcile("run0")
		if diff := cmp.Diff(told, w.Runs["run0"].Status.Deaths); diff != "" {
			w.t.Fatalf("they are told again: (-before +after):\n%s", diff)
		}
	})
}

// All ranks of a Run are turned away wherever they go, so that its status has no room for three ends of each.
func TestManyRanksThatAreTurnedAwayEverywhere(t *testing.T) {
	for _, ranks := range []int{6, 8, 20} {
		tell(t, func(w *world) {
			w.guarded(60, ranks, 0, checkpointed)
			for range 6 {
				for i := range ranks {
					w.Evict(w.pod(fmt.Sprintf("run0-%d", i)), "TopologyAffinityError")
				}
				w.settle()
				if w.Runs["run0"].Status.Phase == rqv1.RunFailed {
					return
				}
			}
			w.t.Fatalf("%d ranks are tried for ever", ranks)
		})
	}
}
