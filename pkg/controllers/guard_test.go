package controllers

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
)

// TestAnEditedGuardIsMadeAsItWas: the API server refuses one that has both minAvailable and maxUnavailable, and one
// that selects other pods guards nobody.
func TestAnEditedGuardIsMadeAsItWas(t *testing.T) {
	least, one := intstr.FromInt32(4), intstr.FromInt32(1)
	wanted := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "guard"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	edited := wanted.DeepCopy()
	edited.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"none": "of-ours"}}}
	g := &guards{kube: fake.NewClientset(edited), written: &sync.Map{}}
	if err := g.WriteGuard(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	got, err := g.kube.PolicyV1().PodDisruptionBudgets("ns").Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted.Spec, got.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
