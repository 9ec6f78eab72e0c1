package reconcile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// TestAGuardThatIsNotWrittenHoldsUpNothing that frees GPUs: whoever may edit a PodDisruptionBudget can make it so large
// that nothing more fits into it, and a webhook for such objects may be away.
func TestAGuardThatIsNotWrittenHoldsUpNothing(t *testing.T) {
	least := intstr.FromInt32(3)
	for name, err := range map[string]error{
		"too large for etcd":       apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
		"too large for a request":  apierrors.NewRequestEntityTooLargeError("train"),
		"a webhook that is away":   apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c"`)),
		"a quota, which it passes": errQuota,
	} {
		api := &recorder{fails: map[string]error{"guard": err}}
		runs, _ := deciding(t, api, submitted("run"))
		o := observed()
		o.Run = submitted("run")
		_, got := runs.CarryOut(t.Context(), o, lifecycle.Decision{
			Guard:  &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least}},
			Delete: []lifecycle.Deletion{{Pod: podOf("9")}}, Close: []lifecycle.Closing{closing("1")}})
		want := []string{"guard 3", "delete train-9:own", "close train-1:Completed@0s"}
		if diff := cmp.Diff(want, api.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if again := Passes(err); again != (got != nil) {
			t.Errorf("%s: it is tried again: %v", name, got)
		}
	}
}

// TestAGuardThatIsNotWrittenKeepsReplacementsBack, and the Leases by which the loss is known: nobody is to be evicted
// meanwhile. One that lets somebody be evicted keeps nothing back.
func TestAGuardThatIsNotWrittenKeepsReplacementsBack(t *testing.T) {
	least := intstr.FromInt32(3)
	for evictable, want := range map[bool][]string{
		false: {"guard 3", "close train-1:Completed@0s", "ranks 5", "create train-5", "status told"},
		true: {"guard 3", "ranks 0", "create train-0", "close train-0:Completed@0s train-1:Completed@0s", "ranks 4 5",
			"create train-4 train-5#0", "status told"},
	} {
		api := &recorder{fails: map[string]error{"guard": errAway}}
		runs, _ := deciding(t, api, submitted("run"))
		o, again := observed(), podOf("4")
		again.Annotations = map[string]string{rqv1.AnnotationReplaces: "{}"}
		o.Run, o.HadLease, o.Pods = submitted("run"), true, append(o.Pods, podOf("0"))
		lost := podOf("0")
		lost.Labels[rqv1.LabelRunUID] = "run"
		_, err := runs.CarryOut(t.Context(), o, lifecycle.Decision{Evictable: evictable,
			Guard:   &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least}},
			Replace: []*corev1.Pod{lost}, Close: []lifecycle.Closing{closing("0"), closing("1")},
			Create: []*corev1.Pod{again, podOf("5")}, Status: &rqv1.RunStatus{Message: "told"}})
		if diff := cmp.Diff(want, api.calls); diff != "" || !errors.Is(err, errAway) {
			t.Errorf("evictable %t: %v (-want +got):\n%s", evictable, err, diff)
		}
	}
}
