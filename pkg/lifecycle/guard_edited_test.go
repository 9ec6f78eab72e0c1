package lifecycle

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestAnEditedGuardIsWrittenAgain, whatever of it somebody has edited: one that selects other pods guards nobody, and
// the Run is taken for guarded.
func TestAnEditedGuardIsWrittenAgain(t *testing.T) {
	one := intstr.FromInt32(1)
	for name, edit := range map[string]func(*policyv1.PodDisruptionBudget){
		"how many are available": func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &one },
		"how many are unavailable": func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, &one
		},
		"which pods": func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"none": "of-ours"}}
		},
	} {
		o := runsFor(time.Hour)
		if got := guarded(&o); got != "at least 4" {
			t.Fatalf("at first: %q", got)
		}
		edit(o.Guards[0])
		if got := guarded(&o); got != "at least 4" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
