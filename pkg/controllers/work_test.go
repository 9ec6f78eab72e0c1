package controllers

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// asked is a line of Runs that tells what becomes of each, instead of letting time go by.
type asked struct {
	priorityqueue.PriorityQueue[types.NamespacedName]
	next  chan types.NamespacedName
	heard chan string
}

func (q *asked) GetWithPriority() (types.NamespacedName, int, bool) {
	run, more := <-q.next
	return run, int(lane.Begin), !more
}

func (q *asked) AddWithOpts(o priorityqueue.AddOpts, _ ...types.NamespacedName) {
	if what := "again, in " + o.After.Round(time.Second).String(); !o.RateLimited {
		q.heard <- what
	} else {
		q.heard <- "again, after a while"
	}
}

func (q *asked) ShutDown()                   {}
func (q *asked) Forget(types.NamespacedName) { q.heard <- "well" }
func (q *asked) Done(types.NamespacedName)   { q.heard <- "done" }

// TestWork looks at one Run after the other, again soon where that went wrong, and when something is due.
func TestWork(t *testing.T) {
	c := newCluster(t)
	q := &asked{next: make(chan types.NamespacedName), heard: make(chan string, 10)}
	c.shutDown()
	c.lanes = newLanes()
	for l, was := range c.lanes.lines {
		was.ShutDown()
		c.lanes.lines[l] = line[types.NamespacedName]{q}
	}
	ctx, end := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.workIn(ctx, lane.Begins)
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
	c.submit(func(r *rqv1.Run) {
		r.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: 30 * time.Second}}
	})
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
	if diff := cmp.Diff(all([]string{theService}, thePods[:1]), c.written()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	c.bind()
	looked(train)
	c.become(corev1.PodSucceeded, 0)
	c.see()
	c.mu.Lock()
	c.faults = []fault{{on: "update status leases", err: broken500}}
	c.mu.Unlock()
	if diff := cmp.Diff([]string{"again, after a while", "again, in 29s", "done"}, looked(train)); diff != "" {
		t.Errorf("one that may run for another 29 s, while a write is refused (-want +got):\n%s", diff)
	}
	close(q.next)
	<-over
	end()
}
