package controllers

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// asked is a queue of Runs that tells what becomes of each, instead of letting time go by.
type asked struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]
	next  chan types.NamespacedName
	heard chan string
}

func (q *asked) Get() (types.NamespacedName, bool) {
	run, more := <-q.next
	return run, !more
}

func (q *asked) AddRateLimited(types.NamespacedName) { q.heard <- "again, after a while" }

func (q *asked) AddAfter(_ types.NamespacedName, d time.Duration) {
	q.heard <- "again, in " + d.Round(time.Second).String()
}

func (q *asked) Forget(types.NamespacedName) { q.heard <- "well" }
func (q *asked) Done(types.NamespacedName)   { q.heard <- "done" }

// TestWork looks at one Run after the other, again soon where that went wrong, and when something is due.
func TestWork(t *testing.T) {
	c := newCluster(t)
	q := &asked{next: make(chan types.NamespacedName), heard: make(chan string, 10)}
	c.queue = q
	ctx, end := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.work(ctx)
	}()
	looked := func(run types.NamespacedName) []string {
		q.next <- run
		var out []string
		for !slices.Contains(out, "done") {
			out = append(out, <-q.heard)
		}
		return out
	}
	none := types.NamespacedName{Namespace: "ns", Name: "none"}
	if diff := cmp.Diff([]string{"well", "done"}, looked(none)); diff != "" {
		t.Errorf("a Run that there is not (-want +got):\n%s", diff)
	}
	c.submit()
	c.see()
	c.mu.Lock()
	c.faults = []fault{{on: "create services", err: broken500}}
	c.mu.Unlock()
	if diff := cmp.Diff([]string{"again, after a while", "done"}, looked(train)); diff != "" {
		t.Errorf("a Run whose Service is not made (-want +got):\n%s", diff)
	}
	c.mu.Lock()
	c.faults = nil
	c.mu.Unlock()
	if diff := cmp.Diff([]string{"well", "done"}, looked(train)); diff != "" {
		t.Errorf("the same, when it is (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all([]string{theService}, thePods), c.written()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	close(q.next)
	<-over
	end()
}
