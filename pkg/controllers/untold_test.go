package controllers

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// refusedWrites are all ways in which the API server, or the way to it, may not take a write.
func refusedWrites() map[string]error {
	pods := corev1.Resource("pods")
	return map[string]error{
		"invalid":       apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "train-0", nil),
		"forbidden":     apierrors.NewForbidden(pods, "train-0", errors.New("a policy says no")),
		"no right":      apierrors.NewForbidden(pods, "", errors.New("the user may not")),
		"too large":     apierrors.NewRequestEntityTooLargeError("train-0"),
		"too large yet": apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
		"conflict":      apierrors.NewConflict(pods, "train-0", errors.New("it has changed")),
		"not found":     apierrors.NewNotFound(pods, "train-0"),
		"timeout":       apierrors.NewTimeoutError("a webhook takes its time", 1),
		"overload":      apierrors.NewTooManyRequests("later", 1),
		"a webhook":     apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c": connection refused`)),
		"a lost answer": errors.New("unexpected EOF"),
	}
}

// TestWhoCannotBeToldGoesAllTheSame: no write that comes before the end of a pod is a condition of it, whoever has made
// the pod, and however that write fails, also where it never stops.
func TestWhoCannotBeToldGoesAllTheSame(t *testing.T) {
	theirs := rankOf(0, corev1.PodRunning)
	theirs.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
	for kind, d := range map[string]lifecycle.Deletion{
		"notice to an own pod": {Pod: rankOf(0, corev1.PodRunning), Notice: &lifecycle.Notice{Reason: "RandomPreempt"}},
		"notice to another's":  {Pod: theirs, Notice: &lifecycle.Notice{Reason: "RandomPreempt"}},
		"word to another's":    {Pod: theirs, Tell: "the Run has ended"},
		"end of an own pod":    {Pod: rankOf(0, corev1.PodRunning), By: noon.Add(time.Minute)},
		"phase of another's":   {Pod: theirs, Tell: "its node is lost", If: lifecycle.NodeLost},
	} {
		for name, err := range refusedWrites() {
			kube, clock := fake.NewClientset(d.Pod), clocktesting.NewFakeClock(noon)
			kube.PrependReactor("patch", "pods", func(core.Action) (bool, runtime.Object, error) { return true, nil, err })
			p := podWriter{kube: kube, clock: clock, untold: new(untold)}
			for began := clock.Now(); clock.Since(began) <= longestUntold; clock.Step(time.Second) {
				if p.DeletePods(t.Context(), []lifecycle.Deletion{d}) == nil {
					break
				}
			}
			gone := apierrors.IsNotFound(err) && !d.By.IsZero() // what is gone needs no end
			left, err := kube.CoreV1().Pods(train.Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) > 0 && !gone && name != "conflict" {
				t.Errorf("%s, %s: %d pods stay for ever (%v)", kind, name, len(left.Items), err)
			}
		}
	}
}

// TestWhoCanBeToldSoonIsTold: what passes by itself is tried again before a pod goes.
func TestWhoCanBeToldSoonIsTold(t *testing.T) {
	for name, err := range refusedWrites() {
		if reconcile.Refused(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		kube, clock := fake.NewClientset(rankOf(0, corev1.PodRunning)), clocktesting.NewFakeClock(noon)
		fails, told := 3, false
		kube.PrependReactor("patch", "pods", func(core.Action) (bool, runtime.Object, error) {
			if fails--; fails >= 0 {
				return true, nil, err
			}
			told = true
			return false, nil, nil
		})
		kube.PrependReactor("delete", "pods", func(core.Action) (bool, runtime.Object, error) {
			if !told {
				t.Errorf("%s: it goes and has not been told", name)
			}
			return false, nil, nil
		})
		p := podWriter{kube: kube, clock: clock, untold: new(untold)}
		d := lifecycle.Deletion{Pod: rankOf(0, corev1.PodRunning), Notice: &lifecycle.Notice{Reason: "RandomPreempt"}}
		for range 4 {
			err = p.DeletePods(t.Context(), []lifecycle.Deletion{d})
			clock.Step(time.Second)
		}
		if err != nil || !told {
			t.Errorf("%s: told %t, %v", name, told, err)
		}
	}
}
