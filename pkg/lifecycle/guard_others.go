package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// userGuards reports whether a PodDisruptionBudget of somebody's own selects a rank, or has the name of the Run's: no
// pod may have two. There may be many of them in a namespace, and many ranks: ranks that are alike are compared once.
func (f *facts) userGuards() bool {
	var ranks []labels.Set
	return slices.ContainsFunc(f.Guards, func(b *policyv1.PodDisruptionBudget) bool {
		of, ours := rank.RunOf(b)
		switch ours = ours && of == f.Run.UID; {
		case b.Name == f.Run.Name:
			return !ours
		case ranks == nil:
			ranks = kindsOf(f.Pods)
		}
		selector := selects(b)
		return slices.ContainsFunc(ranks, func(l labels.Set) bool { return selector.Matches(l) })
	})
}

// numbers reports whether a label numbers ranks, or the pods of one: others are alike on all ranks of a Run.
func numbers(label string) bool {
	switch label {
	case rqv1.LabelIndex, rqv1.LabelGroupIndex, rqv1.LabelCohort, rqv1.LabelEpoch:
		return true
	}
	return false
}

// selects returns what a PodDisruptionBudget selects, but for which ranks by their numbers: it is somebody's own if it
// is for some.
func selects(b *policyv1.PodDisruptionBudget) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	requirements, some := selector.Requirements()
	if !some {
		return labels.Nothing()
	}
	return labels.NewSelector().Add(slices.DeleteFunc(requirements, func(r labels.Requirement) bool {
		return numbers(r.Key())
	})...)
}

// mostKinds is how many kinds of ranks are looked at: they are one, unless somebody labels pods of a Run by hand.
const mostKinds = 8

// kindsOf returns the labels of ranks, once of those that differ by numbers alone.
func kindsOf(pods []*corev1.Pod) (kinds []labels.Set) {
	for _, pod := range pods {
		if pod.Labels[rqv1.LabelRole] != string(rqv1.RoleActive) || slices.ContainsFunc(kinds, func(l labels.Set) bool {
			return alike(l, pod.Labels)
		}) {
			continue
		}
		kinds = append(kinds, pod.Labels)
		if len(kinds) == mostKinds {
			break
		}
	}
	return kinds
}

// alike compares labels but for those that number ranks.
func alike(a, b labels.Set) bool {
	more := 0
	for label, value := range a {
		if numbers(label) {
			continue
		}
		if other, has := b[label]; !has || other != value {
			return false
		}
		more--
	}
	for label := range b {
		if !numbers(label) {
			more++
		}
	}
	return more == 0
}
