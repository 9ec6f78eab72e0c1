package lifecycle

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWhoGuardsARankThemselves: a Run has no PodDisruptionBudget where somebody's own selects a rank of it.
func TestWhoGuardsARankThemselves(t *testing.T) {
	is := func(label, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
	}
	for name, c := range map[string]struct {
		selector *metav1.LabelSelector
		want     string
	}{
		"all pods":                    {&metav1.LabelSelector{}, ""},
		"none":                        {nil, "at least 4"},
		"the Run's":                   {is(rqv1.LabelRun, "run"), ""},
		"another Run's":               {is(rqv1.LabelRun, "another"), "at least 4"},
		"spares":                      {is(rqv1.LabelRole, string(rqv1.RoleSpare)), "at least 4"},
		"a rank by its number":        {is(rqv1.LabelIndex, "3"), ""},
		"a rank that somebody labels": {is("by-hand", "yes"), ""},
		"pods that nobody labels": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "by-hand", Operator: metav1.LabelSelectorOpIn, Values: []string{"no"}}}}, "at least 4"},
		"what nobody can read": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "a", Operator: "Like"}}}, "at least 4"},
	} {
		o := runsFor(time.Hour)
		o.Pods[2].Labels["by-hand"] = "yes"
		o.Guards = []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Name: "mine"},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: c.selector}}}
		if got := guarded(&o); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestRanksThatAreAlikeAreLookedAtOnce, however many there are, and however many kinds somebody makes of them.
func TestRanksThatAreAlikeAreLookedAtOnce(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 100 {
		number := strconv.Itoa(i)
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "train",
			rqv1.LabelRole: string(rqv1.RoleActive), rqv1.LabelIndex: number, rqv1.LabelGroupIndex: number,
			rqv1.LabelCohort: number}}})
	}
	if kinds := kindsOf(pods); len(kinds) != 1 {
		t.Errorf("%d kinds", len(kinds))
	}
	delete(pods[7].Labels, "app")
	if kinds := kindsOf(pods); len(kinds) != 2 {
		t.Errorf("%d kinds, one of which lacks a label", len(kinds))
	}
	for i, pod := range pods {
		pod.Labels["by-hand"] = strconv.Itoa(i)
	}
	if kinds := kindsOf(pods); len(kinds) != mostKinds {
		t.Errorf("%d kinds", len(kinds))
	}
}
