package lifecycle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// stays reports whether the Run is there and is not being deleted.
func (s *state) stays() bool { return s.Run != nil && s.Run.DeletionTimestamp == nil }

// runOf returns the Run that made a pod, as the pod itself says or, where that was taken off it, its Lease.
func (s *state) runOf(pod *corev1.Pod) (types.UID, bool) {
	if run, ok := rank.RunOf(pod); ok {
		return run, true
	}
	if lease := s.leases[pod.UID]; lease != nil {
		return lease.Spec.RunRef.UID, true
	}
	return "", false
}

// orphans adds the pods that no Run governs to those that are deleted: those of a Run that is being deleted, whatever keeps
// its object; those whose Run is gone, however it was deleted; and those that only their Leases tell of, whose ranks others
// take. What has ended goes too: it has the names that a later Run's pods want.
func (s *state) orphans(deletions []Deletion) []Deletion {
	known := map[types.UID]bool{}
	for i := range deletions {
		known[deletions[i].Pod.UID] = true
	}
	for _, pod := range s.Pods {
		run, ours := s.runOf(pod)
		if !ours || known[pod.UID] || !present(pod) {
			continue
		}
		_, _, member := rank.Membership(pod)
		switch {
		case s.Run == nil || s.Run.UID != run:
			deletions = append(deletions, Deletion{Pod: pod, If: RunGone, Run: run})
		case !s.stays() || !member:
			deletions = append(deletions, Deletion{Pod: pod})
		}
	}
	return deletions
}

// farewell is the status of a Run that is deleted before it has ended, for as long as something keeps its object: it says what
// does. It is nil when that stands there, and for a Run that is gone.
func (s *state) farewell() *rqv1.RunStatus {
	if s.Run == nil || s.Run.Ended() {
		return nil
	}
	next := s.Run.Status.DeepCopy()
	next.Message = "being deleted: its pods are ending"
	next.PendingReservation, next.EarliestStart, next.AtRisk = "", nil, nil
	if !slices.ContainsFunc(s.Pods, s.heldBy) {
		if keepers := s.keepers(); len(keepers) > 0 {
			next.Message = "deleted: it holds nothing any more; its object is kept by finalizers " + strings.Join(keepers, ", ")
		}
		next.Funding = nil
		if next.Width != nil {
			next.Width.Allocated, next.Width.Pending = 0, ""
		}
	}
	if equality.Semantic.DeepEqual(&s.Run.Status, next) {
		return nil
	}
	return next
}

// heldBy reports whether a pod that has not ended is of the Run.
func (s *state) heldBy(pod *corev1.Pod) bool {
	run, ours := s.runOf(pod)
	return ours && run == s.Run.UID && holds(pod)
}

// keepers are the finalizers of others than the garbage collector, which takes its own off by itself.
func (s *state) keepers() []string {
	return slices.DeleteFunc(slices.Clone(s.Run.Finalizers), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}
