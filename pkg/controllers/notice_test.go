package controllers

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// TestAPodThatCannotBeToldGoesAllTheSame: whoever may edit a pod can fill it up with labels until no condition fits
// into it any more.
func TestAPodThatCannotBeToldGoesAllTheSame(t *testing.T) {
	for name, err := range map[string]error{
		"too large": apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
		"forbidden": apierrors.NewForbidden(corev1.Resource("pods"), "train-0", errors.New("a policy says no")),
		"a webhook": apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c": connection refused`)),
		"invalid":   apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "train-0", nil),
	} {
		kube := fake.NewClientset(rankOf(0, corev1.PodRunning), rankOf(1, corev1.PodRunning))
		kube.PrependReactor("patch", "pods", func(core.Action) (bool, runtime.Object, error) { return true, nil, err })
		p := podWriter{kube: kube, clock: clocktesting.NewFakeClock(noon), untold: new(untold)}
		if err := p.DeletePods(t.Context(), []lifecycle.Deletion{
			{Pod: rankOf(0, corev1.PodRunning), Notice: &lifecycle.Notice{Reason: "RandomPreempt"}},
			{Pod: rankOf(1, corev1.PodRunning), Tell: "the Run has ended"}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		left, err := kube.CoreV1().Pods(train.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("%s: %d pods stay for ever, of one that is cut and one that others made (%v)", name, len(left.Items), err)
		}
	}
}

// TestAPodThatIsFullGoesWithoutGrace: when it is to end does not fit into it either.
func TestAPodThatIsFullGoesWithoutGrace(t *testing.T) {
	kube := fake.NewClientset(rankOf(0, corev1.PodRunning))
	kube.PrependReactor("delete", "pods", func(a core.Action) (bool, runtime.Object, error) {
		grace := a.(core.DeleteActionImpl).GetDeleteOptions().GracePeriodSeconds
		return grace == nil || *grace > 0, nil, apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
	})
	p := podWriter{kube: kube, clock: clocktesting.NewFakeClock(noon), untold: new(untold)}
	if err := p.DeletePods(t.Context(), []lifecycle.Deletion{{Pod: rankOf(0, corev1.PodRunning)}}); err != nil {
		t.Error(err)
	}
	left, err := kube.CoreV1().Pods(train.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("it stays for ever (%v)", err)
	}
}
