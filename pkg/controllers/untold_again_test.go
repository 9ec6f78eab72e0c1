package controllers

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// TestWhatHasPassedIsNotHeldAgainstTheNextEnd: a pod whose end was called off, after one write failed, is told when it
// ends later, also if the first write of that fails as well.
func TestWhatHasPassedIsNotHeldAgainstTheNextEnd(t *testing.T) {
	kube, clock := fake.NewClientset(rankOf(0, corev1.PodRunning)), clocktesting.NewFakeClock(noon)
	fails, told := true, false
	kube.PrependReactor("patch", "pods", func(core.Action) (bool, runtime.Object, error) {
		if fails {
			return true, nil, errors.New("unexpected EOF")
		}
		told = true
		return false, nil, nil
	})
	kube.PrependReactor("delete", "pods", func(core.Action) (bool, runtime.Object, error) {
		if !told {
			t.Error("it goes and has not been told")
		}
		return false, nil, nil
	})
	p := podWriter{kube: kube, clock: clock, untold: new(untold)}
	d := []lifecycle.Deletion{{Pod: rankOf(0, corev1.PodRunning), Notice: &lifecycle.Notice{Reason: "RandomPreempt"}}}
	if p.DeletePods(t.Context(), d) == nil {
		t.Error("it went at once")
	}
	clock.Step(time.Hour)
	if p.DeletePods(t.Context(), d) == nil {
		t.Error("it went at the first try an hour later")
	}
	clock.Step(time.Second)
	fails = false
	if err := p.DeletePods(t.Context(), d); err != nil || !told {
		t.Errorf("told %t, %v", told, err)
	}
}
