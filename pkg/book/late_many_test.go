package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// More ranks than a status tells of are not ready in time, as when an image cannot be pulled: all of them are started
// again, and it is nobody else's doing.
func TestMoreRanksAreLateThanAreToldOf(t *testing.T) {
	const ranks = rqv1.MostDeaths + 4
	tell(t, func(w *world) {
		w.AtOnce = false
		w.guarded(ranks, ranks, 0, patient(20), checkpointed, func(s *rqv1.RunSpec) {
			s.Runtime.StartupDeadline = &metav1.Duration{Duration: time.Hour}
		})
		for _, uid := range w.SortedPods() {
			pod := w.Pods[uid].DeepCopy()
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse,
				LastTransitionTime: metav1.NewTime(w.Now)}}
			w.SetPod(pod)
		}
		w.Pass(time.Hour)
		for range 3 {
			w.looked("run0")
		}
		if going := w.Ends.Len(); going != ranks {
			w.t.Fatalf("%d of %d ranks are told to go: %s", going, ranks, w.Runs["run0"].Status.Message)
		}
		w.Pass(time.Minute)
		w.EndPods()
		w.EndPods()
		w.settle()
		w.expectLedger("run0", map[string]int{"Failed": ranks, "open Restart Active": ranks})
		for _, l := range w.Leases {
			if l.Status.Closed && l.Status.Cause != rqv1.CauseProgram {
				w.t.Fatalf("%s has closed by the doing of %s", l.Name, l.Status.Cause)
			}
		}
	})
}
