package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventually polls until check returns nil, and fails the test with its last answer when it never does.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := within(patience, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// within polls until check returns nil, for as long as limit, and returns its last answer. Many checks list all there
// is, which is work for the API server: what has not come about within a second is looked for less often.
func within(limit time.Duration, check func() error) error {
	last := errors.New("never looked")
	look := func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}
	const soon = time.Second
	if wait.PollUntilContextTimeout(context.Background(), 25*time.Millisecond, min(soon, limit), true, look) != nil &&
		limit > soon {
		_ = wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, limit-soon, true, look)
	}
	return last
}

// throughout polls for as long as span and fails the test as soon as check does not return nil.
func throughout(t *testing.T, span time.Duration, what string, check func() error) {
	t.Helper()
	var broken error
	_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, span, true, func(context.Context) (bool, error) {
		broken = check()
		return broken != nil, nil
	})
	if broken != nil {
		t.Fatalf("%s: %v", what, broken)
	}
}

// listWatch lists and watches all objects of a kind.
func listWatch(c client.WithWatch, list client.ObjectList) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			into := list.DeepCopyObject().(client.ObjectList)
			return into, c.List(ctx, into, &client.ListOptions{Raw: &raw})
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &raw})
		},
	}
}
