package lifecycle

import (
	"slices"
	"strconv"

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
	if (f.Unpaid || f.Yields) && !f.theirs() {
		return nil, nil
	}
	named := map[string]bool{}
	for _, pod := range f.Pods {
		named[pod.Name] = true
	}
	m := makerFor(s)
	ranks, spares := expected(s)
	if f.Alone && !saysRunning(f.Run) {
		ranks, spares = ranks[:min(leads(ranks)+1, len(ranks))], nil
	}
	if f.theirs() {
		ranks = nil // others make them
	}
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

// expected returns the parts that the Run should have a pod for: with the cohort, once the status says that it grows.
func expected(s *situation) (ranks, spares []*corev1.Pod) {
	if s.width.growing != growingIn(s.facts.Run) {
		return s.roster.core(), s.roster.coreSpares()
	}
	return s.roster.ranks, s.roster.spares
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
