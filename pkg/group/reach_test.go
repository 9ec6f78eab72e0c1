package group

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rules that keep pods of other namespaces away are told, but those that controllers write for their own pods.
func TestWhoKeepsOtherNamespacesAway(t *testing.T) {
	const jobKey = "jobset.sigs.k8s.io/job-key"
	type term = corev1.PodAffinityTerm
	any, own := &metav1.LabelSelector{}, true
	exclusive := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: jobKey, Operator: metav1.LabelSelectorOpExists},
		{Key: jobKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"mine"}}}}
	certain := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: jobKey, Operator: metav1.LabelSelectorOpIn, Values: []string{"another's"}}}}
	another := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exclusive.MatchExpressions[0],
		{Key: jobKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"another's"}}}}
	everybodyElse := &metav1.LabelSelector{MatchExpressions: exclusive.MatchExpressions[1:]}
	for name, c := range map[string]struct {
		term                 corev1.PodAffinityTerm
		key, made            bool
		reachesOut, template bool
	}{
		"own namespace":           {term: term{LabelSelector: any}},
		"own namespace by name":   {term: term{LabelSelector: any, Namespaces: []string{"ns"}}},
		"another namespace":       {term{LabelSelector: any, Namespaces: []string{"ns", "x"}}, own, own, true, true},
		"all namespaces":          {term{LabelSelector: any, NamespaceSelector: any}, own, own, true, true},
		"some namespaces":         {term{LabelSelector: any, NamespaceSelector: exclusive}, own, own, true, true},
		"exclusive placement":     {term{LabelSelector: exclusive, NamespaceSelector: any}, own, own, false, true},
		"without the label":       {term{LabelSelector: exclusive, NamespaceSelector: any}, false, own, true, true},
		"made by nobody":          {term{LabelSelector: exclusive, NamespaceSelector: any}, own, false, true, true},
		"all who lack that label": {term{LabelSelector: everybodyElse, NamespaceSelector: any}, own, own, true, true},
		"all who have that label": {term{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: exclusive.MatchExpressions[:1]}, NamespaceSelector: any}, own, own, true, true},
		"a certain Job":        {term{LabelSelector: certain, NamespaceSelector: any}, own, own, true, true},
		"all but another's":    {term{LabelSelector: another, NamespaceSelector: any}, own, own, true, true},
		"nobody in particular": {term{NamespaceSelector: any}, own, own, true, true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{}}}
		if c.key {
			pod.Labels[jobKey] = "mine"
		}
		if c.made {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j",
				Controller: &own}}
		}
		c.term.TopologyKey = "rack"
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []term{c.term}}}
		if out := ReachesOut(pod) != ""; out != c.reachesOut {
			t.Errorf("%s: %v for a pod that no Run made, and %v wanted", name, out, c.reachesOut)
		}
		if asks := ExclusiveJob(pod) != nil; asks != (c.template && !c.reachesOut) {
			t.Errorf("%s: %v that it depends on the pod's Job", name, asks)
		}
		if c.made {
			pod.OwnerReferences[0].Kind = "Other"
			if ReachesOut(pod) == "" && c.template {
				t.Errorf("%s: it is let through for a pod that no Job made", name)
			}
		}
		if out := ReachesOthers(pod) != ""; out != c.template {
			t.Errorf("%s: %v for a pod of a Run, and %v wanted", name, out, c.template)
		}
	}
}
