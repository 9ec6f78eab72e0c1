package plugins

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// TestAClaimThatAGangSharesAndNobodyHas is told: the gang would wait for it for ever. One that is allocated is shared,
// and one that a single pod uses is its own.
func TestAClaimThatAGangSharesAndNobodyHas(t *testing.T) {
	for name, c := range map[string]struct {
		size      int
		allocated bool
		refused   bool
	}{
		"shared":          {size: 2, refused: true},
		"shared and had":  {size: 2, allocated: true},
		"of a single pod": {size: 1},
	} {
		g, claim := newGang(t, c.size), "dataset"
		for _, pod := range g.pods {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "data", ResourceClaimName: &claim}}
		}
		stored := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: claim, UID: "claim"}}
		if c.allocated {
			stored.Status.Allocation = &resourceapi.AllocationResult{}
		}
		plugins := judged{stored: []runtime.Object{stored}, by: []string{names.DynamicResources}}.framework(t,
			cache.NewSnapshot(nil, nil))
		devices := plugins.SharedDRAManager()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true,
			func(context.Context) (bool, error) {
				_, err := devices.ResourceClaims().Get("ns", claim)
				return err == nil, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		g.handle = plugins
		node, refusal := g.place(t.Context(), g.pods[0], noon)
		switch {
		case c.refused && (refusal == nil || !strings.Contains(refusal.Message, "ResourceClaim dataset")):
			t.Errorf("%s: placed on %q, %v", name, node, refusal)
		case !c.refused && (refusal != nil || node == ""):
			t.Errorf("%s: %v", name, refusal)
		}
	}
}
