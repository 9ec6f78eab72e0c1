package reconcile

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// TestNoWriteHoldsUpAnEnd: whatever comes before pods go and Leases close, and however that fails again and again, they
// go and close within seconds, of own pods as of others'.
func TestNoWriteHoldsUpAnEnd(t *testing.T) {
	pods, least := corev1.Resource("pods"), intstr.FromInt32(3)
	for what, err := range map[string]error{
		"invalid":       apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "train-0", nil),
		"forbidden":     apierrors.NewForbidden(pods, "train-0", errors.New("a policy says no")),
		"no right":      apierrors.NewForbidden(pods, "", errors.New("the user may not")),
		"too large":     apierrors.NewRequestEntityTooLargeError("train-0"),
		"conflict":      apierrors.NewConflict(pods, "train-0", errors.New("it has changed")),
		"not found":     apierrors.NewNotFound(pods, "train-0"),
		"timeout":       apierrors.NewTimeoutError("a webhook takes its time", 1),
		"overload":      apierrors.NewTooManyRequests("later", 1),
		"a lost answer": errors.New("unexpected EOF"),
	} {
		for _, write := range []string{"status", "guard", "unguard", "release", "adopt", "create train-0", "ranks",
			"service", "outlive"} {
			for _, source := range []string{"", string(rqv1.SourcePods)} {
				api := &recorder{fails: map[string]error{write: err}}
				runs, _ := deciding(t, api, submitted("run"))
				o, goes := observed(), podOf("9")
				o.Run = submitted("run")
				goes.Labels[rqv1.LabelSource] = source
				d := lifecycle.Decision{Delete: []lifecycle.Deletion{{Pod: goes}}, Close: []lifecycle.Closing{closing("1")},
					Release: []*corev1.Pod{podOf("8")}, Status: &rqv1.RunStatus{Phase: rqv1.RunFailed, Message: "failed"},
					Adopt:    []lifecycle.Adoption{{Pod: podOf("0"), Labels: map[string]string{rqv1.LabelIndex: "0"}}},
					Outlived: []lifecycle.Closing{outliving("7")}, Replace: []*corev1.Pod{podOf("0")}, Service: &corev1.Service{}}
				guard := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least}}
				if write == "unguard" {
					d.Unguard = guard
				} else {
					d.Guard = guard
				}
				for after := time.Duration(0); after <= longestUntold; after += time.Second {
					o.Now = noon.Add(after)
					_, _ = runs.CarryOut(t.Context(), o, d)
				}
				for _, call := range []string{"delete train-9", "close train-1"} {
					if !slices.ContainsFunc(api.calls, func(is string) bool { return strings.HasPrefix(is, call) }) {
						t.Errorf("%s of the %s, pod of %q: no %s", what, write, source, call)
					}
				}
			}
		}
	}
}

// outliving has a Lease be open for a minute more, for containers whose pod is gone.
func outliving(index string) lifecycle.Closing {
	return lifecycle.Closing{Lease: leaseOf(index), Ended: noon.Add(time.Minute), LostSince: noon.Add(-time.Minute),
		Others: 8}
}

// TestALeaseOutlivesItsPod, as far as the API server has no such pod either. What is refused is not tried for ever: the
// book knows it.
func TestALeaseOutlivesItsPod(t *testing.T) {
	for name, c := range map[string]struct {
		alive map[types.UID]bool
		err   error
		want  []string
		fails bool
	}{
		"gone":       {want: []string{"alive [uid3]", "outlive train-3@1m0s"}},
		"not gone":   {alive: map[types.UID]bool{"uid3": true}, want: []string{"alive [uid3]"}},
		"refused":    {err: errQuota, want: []string{"alive [uid3]", "outlive train-3@1m0s"}},
		"not stored": {err: errAway, want: []string{"alive [uid3]", "outlive train-3@1m0s"}, fails: true},
	} {
		api := &recorder{fails: map[string]error{"outlive": c.err}, alive: c.alive}
		runs, _ := deciding(t, api)
		_, err := runs.CarryOut(t.Context(), observed(), lifecycle.Decision{Outlived: []lifecycle.Closing{outliving("3")}})
		if diff := cmp.Diff(c.want, api.calls); diff != "" || (err != nil) != c.fails {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
