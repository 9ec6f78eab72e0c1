package book_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// More ranks are evicted at once than a status tells of, as when a taint comes to many nodes: all of them are lost
// by their nodes' doing.
func TestMoreRanksAreEvictedThanAreToldOf(t *testing.T) {
	const ranks = rqv1.MostDeaths + 4
	tell(t, func(w *world) {
		w.AtOnce = false
		w.guarded(2*ranks, ranks, 0, patient(20))
		var pods []types.UID
		for i := range ranks {
			name := fmt.Sprintf("run0-%d", i)
			pods = append(pods, w.pod(name))
			w.EvictByAPI(w.pod(name))
		}
		w.looked("run0")
		for _, uid := range pods {
			w.DeletePod(uid)
		}
		w.settle()
		w.expectLedger("run0", map[string]int{"Evicted": ranks, "open Swap Active": ranks})
		for _, l := range w.Leases {
			if l.Status.Closed && l.Status.Cause != rqv1.CauseNode {
				w.t.Fatalf("%s has closed by the doing of %s", l.Name, l.Status.Cause)
			}
		}
		for i := range ranks {
			if w.on(fmt.Sprintf("run0-%d", i)) == "" {
				w.t.Fatalf("rank %d is on no node", i)
			}
		}
	})
}

// A pod without a grace period is gone as soon as it is evicted: nobody has seen it go.
func TestARankThatIsEvictedWithoutGrace(t *testing.T) {
	tell(t, func(w *world) {
		w.AtOnce = false
		w.guarded(4, 2, 1)
		spare := w.on("run0-s0")
		w.EvictByAPI(w.pod("run0-0"))
		w.settle()
		if on := w.on("run0-0"); on != spare {
			w.t.Fatalf("the rank is on %q, want the spare's node %s", on, spare)
		}
		w.expectLedger("run0", map[string]int{"Evicted": 1, "Swap": 1, "open Swap Active": 1, "open Start Active": 1,
			"open Start Spare": 1})
	})
}
