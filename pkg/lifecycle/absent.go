package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// absent returns the pods that the Run should have and has not; replacements are the pods that take the places of
// spares. A rank whose pod ended well is not missed (R28), and a name that an earlier pod still has, also of an earlier
// Run of the same name, is waited for. A Run that nobody can pay for gets no pods, and one that waits for its places
// its first one alone (R32).
func absent(s *situation) (replacements, out []*corev1.Pod) {
	f := s.facts
	named := map[string]bool{}
	for _, pod := range f.Pods {
		named[pod.Name] = true
	}
	m := makerFor(s)
	ranks, spares := s.wanted()
	most := shardsToMake(f, ranks)
	for index, pod := range ranks {
		if len(out) >= most {
			break
		}
		if pod != nil || named[rank.Part{Index: index}.PodName(f.Run.Name)] {
			continue
		}
		made, relieved := s.swaps.relief[index]
		pod := m.newRank(index)
		if relieved {
			pod.Annotations = with(pod.Annotations, map[string]string{rqv1.AnnotationReplaces: made.Annotation()})
		}
		if made.Spare != "" {
			replacements = append(replacements, pod)
		} else {
			out = append(out, pod)
		}
	}
	for index, pod := range spares {
		if pod == nil && !named[rank.Part{Index: index, Spare: true}.PodName(f.Run.Name)] {
			out = append(out, m.newSpare(index))
		}
	}
	return replacements, out
}

// leads returns the first rank that is not on a node, by which the others are planned; the number of ranks if all are.
func leads(ranks []*corev1.Pod) int {
	for i, pod := range ranks {
		if pod == nil || !bound(pod) {
			return i
		}
	}
	return len(ranks)
}

// wanted returns the parts for which pods are made now that have none.
func (t *footing) wanted() (ranks, spares []*corev1.Pod) {
	f := t.facts
	if (f.Unpaid || f.Yields) && !f.theirs() {
		return nil, nil
	}
	ranks, spares = t.expected()
	if f.Alone && !saysRunning(f.Run) {
		ranks, spares = ranks[:min(leads(ranks)+1, len(ranks))], nil
	}
	if f.theirs() {
		ranks = nil // others make them
	}
	return ranks, spares
}

// nameKept says which pod never runs and keeps another of its name from being made that is wanted; empty where none
// does.
func (t *footing) nameKept() string {
	f := t.facts
	if f.Shape != nil {
		return ""
	}
	kept := map[string]*corev1.Pod{}
	for _, pod := range f.Pods {
		if rank.NeverRuns(pod) && len(pod.Finalizers) > 0 {
			kept[pod.Name] = pod
		}
	}
	if len(kept) == 0 {
		return ""
	}
	ranks, spares := t.wanted()
	for _, part := range slices.Concat(partsOf(ranks, false), partsOf(spares, true)) {
		if pod := kept[part.PodName(f.Run.Name)]; pod != nil {
			return fmt.Sprintf("pod %s was deleted before it had a node; another of its name can be created once its "+
				"finalizers are taken off: %s", pod.Name, strings.Join(pod.Finalizers, ", "))
		}
	}
	return ""
}

func partsOf(pods []*corev1.Pod, spare bool) []rank.Part {
	out := make([]rank.Part, len(pods))
	for index := range out {
		out[index] = rank.Part{Index: index, Spare: spare}
	}
	return out
}

// expected returns the parts that the Run should have a pod for: with the cohort, once the status says that it grows.
func (t *footing) expected() (ranks, spares []*corev1.Pod) {
	if t.width.growing != growingIn(t.facts.Run) {
		return t.roster.core(), t.roster.coreSpares()
	}
	return t.roster.ranks, t.roster.spares
}

// makerFor returns what makes the pods of a Run at its width.
func makerFor(s *situation) *maker {
	m := &maker{run: s.facts.Run, rules: &s.facts.Rules, gpus: s.facts.GPUResource,
		kept: s.width.kept, shape: s.width.shape, cohort: cohortOf(s)}
	if i := slices.IndexFunc(s.roster.ranks, func(pod *corev1.Pod) bool { return pod != nil }); i >= 0 {
		m.rank = s.roster.ranks[i]
	}
	return m
}

// cohortOf returns the number of the cohort by which the Run grows: one more than it has had.
func cohortOf(s *situation) string {
	if s.width.growing == 0 {
		return firstCohort
	}
	cohort := s.roster.cohort()
	if i := slices.IndexFunc(cohort, func(pod *corev1.Pod) bool { return pod != nil }); i >= 0 {
		return cohort[i].Labels[rqv1.LabelCohort]
	}
	last := 0
	for _, pod := range s.facts.Pods {
		number, _ := strconv.Atoi(pod.Labels[rqv1.LabelCohort])
		last = max(last, number)
	}
	for _, lease := range s.facts.Leases {
		last = max(last, int(lease.Spec.Cohort))
	}
	return strconv.Itoa(last + 1)
}
