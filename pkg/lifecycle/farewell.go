package lifecycle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// farewell is the status of a Run that is deleted before it has ended, for as long as something keeps its object: it
// says what does. It is nil when that stands there, and for a Run that is gone.
func farewell(f *facts) *rqv1.RunStatus {
	if f.Run == nil || f.Run.Ended() {
		return nil
	}
	next := f.Run.Status.DeepCopy()
	next.Message = "being deleted: its pods are ending"
	next.Message = Shortened(f.withUnended(next.Message), longestMessage)
	next.Refusal = nil
	next.PendingReservation, next.EarliestStart, next.Queue, next.Forecast = "", nil, nil, nil
	next.AtRisk, next.AtRiskTotal = nil, 0
	if !slices.ContainsFunc(f.Pods, f.heldBy) {
		if keepers := keepers(f.Run); len(keepers) > 0 {
			next.Message = "deleted: it holds no GPUs; its object is kept by finalizers " + strings.Join(keepers, ", ")
		}
		next.Funding = nil
		if next.Width != nil {
			next.Width.Allocated, next.Width.Pending = 0, ""
		}
	}
	if equality.Semantic.DeepEqual(f.stored, next) {
		return nil
	}
	return next
}

// heldBy reports whether a pod that has not ended is of the Run.
func (f *facts) heldBy(pod *corev1.Pod) bool {
	run, ours := f.runOf(pod)
	return ours && run == f.Run.UID && unfinished(pod)
}

// keepers are the finalizers of others than the garbage collector, which takes its own off by itself.
func keepers(run *rqv1.Run) []string {
	return slices.DeleteFunc(slices.Clone(run.Finalizers), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}
