package controllers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// TestMakingPods makes pods whose names are free, are the same Run's, or another's, or of which the API server takes
// none.
func TestMakingPods(t *testing.T) {
	stranger := rankOf(0, corev1.PodRunning)
	stranger.OwnerReferences[0].UID = "another"
	none := func(err error) bool { return err == nil }
	for name, c := range map[string]struct {
		there *corev1.Pod
		quota bool
		is    func(error) bool
		made  int
	}{
		"free":  {is: none, made: 2},
		"there": {there: rankOf(0, corev1.PodRunning), is: none, made: 2},
		"another Run's": {there: stranger, is: func(err error) bool {
			return errors.Is(err, reconcile.NameTaken{Kind: "Pod", Name: "train-0"})
		}, made: 2},
		"beyond its quota": {quota: true, is: apierrors.IsForbidden},
	} {
		kube := fake.NewClientset()
		if c.there != nil {
			kube = fake.NewClientset(c.there)
		}
		kube.PrependReactor("create", "pods", func(core.Action) (bool, runtime.Object, error) {
			return c.quota, nil, apierrors.NewForbidden(corev1.Resource("pods"), "train-0", errors.New("exceeded quota"))
		})
		p := podWriter{kube: kube, clock: clocktesting.NewFakeClock(noon), untold: new(untold)}
		if err := p.CreatePods(t.Context(), []*corev1.Pod{rankOf(0, corev1.PodPending)}); !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
		_ = p.CreatePods(t.Context(), []*corev1.Pod{rankOf(1, corev1.PodPending)})
		list, err := kube.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != c.made {
			t.Errorf("%s: %d pods, %v", name, len(list.Items), err)
		}
	}
}

// TestDeletingPods deletes with a pod's own grace period, with less, and with notice.
func TestDeletingPods(t *testing.T) {
	none := int64(0)
	for name, c := range map[string]struct {
		deletion lifecycle.Deletion
		want     []string
		grace    *int64
	}{
		"its own grace": {want: []string{"delete"}},
		"none":          {deletion: lifecycle.Deletion{GraceSeconds: &none}, want: []string{"delete"}, grace: &none},
		"with notice":   {deletion: lifecycle.Deletion{Notice: &lifecycle.Notice{}}, want: []string{"patch", "delete"}},
		"of a pod that is gone": {deletion: lifecycle.Deletion{Pod: rankOf(7, corev1.PodRunning),
			Notice: &lifecycle.Notice{}},
			want: []string{"patch", "delete"}},
	} {
		kube := fake.NewClientset(rankOf(0, corev1.PodRunning))
		if c.deletion.Pod == nil {
			c.deletion.Pod = rankOf(0, corev1.PodRunning)
		}
		p := podWriter{kube: kube, clock: clocktesting.NewFakeClock(noon), untold: new(untold)}
		if err := p.DeletePods(t.Context(), []lifecycle.Deletion{c.deletion}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, action := range kube.Actions() {
			got = append(got, action.GetVerb())
			if d, ok := action.(core.DeleteActionImpl); ok {
				options := d.GetDeleteOptions()
				if uid := options.Preconditions.UID; *uid != c.deletion.Pod.UID || !cmp.Equal(options.GracePeriodSeconds, c.grace) {
					t.Errorf("%s: deletes %s with %v", name, *uid, options.GracePeriodSeconds)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
