package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// roster is the Run's pods by part, at a width. Those of the cohort by which the Run grows come last by index.
type roster struct {
	// ranks and spares are the pods by index; nil where there is none.
	ranks, spares []*corev1.Pod
	// beyond are pods of either kind beyond the width.
	beyond []*corev1.Pod
	// cohortRank and cohortSpare are the indexes at which the cohort begins.
	cohortRank, cohortSpare int
}

// rosterAt sorts the Run's pods at a width. A Run without a shape has no ranks, and spares in any order: nobody knows
// which there are.
func rosterAt(f *facts, w width) roster {
	r := roster{ranks: make([]*corev1.Pod, w.shape.Pods()), spares: make([]*corev1.Pod, w.shape.Spares()),
		cohortRank: w.kept.Pods(), cohortSpare: w.kept.Spares()}
	for _, pod := range f.Pods {
		run, part, ok := rank.Membership(pod)
		if !ok || run != f.Run.UID {
			continue
		}
		switch {
		case f.Shape != nil && part.Spare:
			r.spares = append(r.spares, pod)
		case f.Shape != nil:
			r.beyond = append(r.beyond, pod)
		case part.Spare && part.Index < len(r.spares):
			r.spares[part.Index] = pod
		case !part.Spare && part.Index < len(r.ranks):
			r.ranks[part.Index] = pod
		default:
			r.beyond = append(r.beyond, pod)
		}
	}
	return r
}

// all returns every pod of the Run.
func (r *roster) all() []*corev1.Pod { return slices.Concat(r.ranks, r.spares, r.beyond) }

// core returns the ranks that the Run has without the cohort that it grows by.
func (r *roster) core() []*corev1.Pod { return r.ranks[:r.cohortRank] }

// coreSpares returns the spares that the Run has without the cohort that it grows by.
func (r *roster) coreSpares() []*corev1.Pod { return r.spares[:r.cohortSpare] }

// cohort returns the pods by which the Run grows; nil where there is none.
func (r *roster) cohort() []*corev1.Pod {
	return slices.Concat(r.ranks[r.cohortRank:], r.spares[r.cohortSpare:])
}
