package risk_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/risk"
)

// TestAfterwards tells people the truth about what others make, of whatever kind.
func TestAfterwards(t *testing.T) {
	saves := &rqv1.RunRuntime{Checkpoint: &metav1.Duration{}}
	const remade = "it starts again only if its pods are made again"
	for want, spec := range map[string]rqv1.RunSpec{
		"it does not start again, since it declares no checkpoint": {},
		"it waits to start again from its checkpoint":              {Runtime: saves},
		"it does not start again unless a controller makes another pod": {Source: rqv1.SourcePods, Runtime: saves,
			Pods: &rqv1.RunPods{Kind: "Pod", Name: "precious"}},
		"it starts again only if Job/train makes its pods again": {Source: rqv1.SourcePods, Runtime: saves,
			Pods: &rqv1.RunPods{APIGroup: "batch", Kind: "Job", Name: "train"}},
		remade: {Source: rqv1.SourcePods,
			Pods: &rqv1.RunPods{APIGroup: "scheduling.k8s.io", Kind: "PodGroup", Name: "gang"}},
		remade + ".": {Source: rqv1.SourcePods, Pods: &rqv1.RunPods{Kind: "Group", Name: "named by annotations"}},
	} {
		if got := risk.Afterwards(&rqv1.Run{Spec: spec}); got != strings.TrimSuffix(want, ".") {
			t.Errorf("said %q, want %q", got, want)
		}
	}
}
