package reconcile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// TestObjectionTo tells what a quota is for from the sentence of the API server's admission.
func TestObjectionTo(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for said, want := range map[string]book.Objection{
		"exceeded quota": {Quota: true},
		"exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4": {Quota: true, Most: 4, Pods: 4},
		"exceeded quota: q, requested: pods=1,requests.nvidia.com/gpu=8, used: pods=4,requests.nvidia.com/gpu=8, " +
			"limited: pods=40,requests.nvidia.com/gpu=20": {Quota: true, Most: 2, Pods: 40},
		"exceeded quota: q, requested: requests.memory=1536Mi, used: requests.memory=0, limited: requests.memory=4Gi": {
			Quota: true, Most: 2},
		"exceeded quota: q, requested: limits.cpu=1500m, used: limits.cpu=0, limited: limits.cpu=a lot": {Quota: true},
		"exceeded quota: q, requested: , used: , limited: ":                                             {Quota: true},
		`violates PodSecurity "restricted:latest"`:                                                      {},
	} {
		refused := apierrors.NewForbidden(pods, "train-0", errors.New(said))
		want.Why = "the API server rejects the Run's pods: " + refused.Error()
		if diff := cmp.Diff(want, objectionTo(errors.Join(refused, refused))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", said, diff)
		}
	}
	taken := NameTaken{"Pod", "exceeded quota"}
	if diff := cmp.Diff(book.Objection{Why: taken.Error()}, objectionTo(taken)); diff != "" {
		t.Errorf("a name that is taken (-want +got):\n%s", diff)
	}
}
