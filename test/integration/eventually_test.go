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

// eventually looks, each time that something of the test's sites changes, until check returns nil, and fails the test
// with its last answer when it never does.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := waitFor(t, what, patience, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// waitFor looks likewise, for as long as limit, and returns the last answer.
func waitFor(t testing.TB, what string, limit time.Duration, check func() error) error {
	return look(sitesOf(t), waited{test: t.Name(), what: what}, limit, check)
}

// within looks until check returns nil, for as long as limit, and returns its last answer.
func within(limit time.Duration, check func() error) error { return look(nil, waited{}, limit, check) }

const (
	// between is how long after a look the next is, however much changes: many list all that a site has. What comes about
	// at once is seen sooner.
	between, betweenFirst = 100 * time.Millisecond, 25 * time.Millisecond
	// unasked is how long after a look the next is although nothing changes: not all that is waited for is an object of a
	// site.
	unasked = 500 * time.Millisecond
	// atFirst is how long it is looked often.
	atFirst = time.Second
)

// look looks until check returns nil: at once, and whenever something has changed on some sites; without any, again and
// again. A limit is as much longer as the control planes are slower than they should be.
func look(sites []*site, w waited, limit time.Duration, check func() error) error {
	w.began = time.Now()
	left, last := limit, errors.New("never looked")
	for {
		from := time.Now()
		changed, end := newsOf(sites)
		last = check()
		if last == nil || left <= 0 {
			end()
			w.over(limit, left)
			return last
		}
		least, most := between, unasked
		if time.Since(w.began) < atFirst {
			least = betweenFirst
		}
		if len(sites) == 0 {
			most = least
		}
		letPass(least)
		if most > least {
			select {
			case <-changed:
			case <-time.After(most - least):
			}
		}
		end()
		left -= time.Duration(float64(time.Since(from)) / slowness(sites))
	}
}

// letPass waits.
func letPass(d time.Duration) { <-time.After(d) }

// throughout looks for as long as span and fails the test as soon as check does not return nil.
func throughout(t *testing.T, span time.Duration, what string, check func() error) {
	t.Helper()
	var broken error
	_ = wait.PollUntilContextTimeout(t.Context(), between, span, true, func(context.Context) (bool, error) {
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
