package controllers

import (
	"container/heap"
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// expiries has Runs that have ended looked at when their time is over (R39). Until then nobody looks at them, however
// many there are.
type expiries struct {
	byDefault time.Duration
	clock     clock.Clock
	changed   func(run types.NamespacedName)

	mu     sync.Mutex
	of     map[types.NamespacedName]*expiry
	next   expiryHeap
	sooner chan struct{} // holds one when the first of them is another
}

// again is after how long a Run is looked at again whose time was over. A clock that jumps is noticed after longest.
const again, longest = time.Minute, 15 * time.Second

func newExpiries(byDefault time.Duration, clock clock.Clock, changed func(types.NamespacedName)) *expiries {
	return &expiries{byDefault: byDefault, clock: clock, changed: changed, of: map[types.NamespacedName]*expiry{},
		sooner: make(chan struct{}, 1)}
}

// note notes when a Run is to go, as it stands by now.
func (e *expiries) note(run *rqv1.Run) {
	at, goes := run.ExpiresAt(e.byDefault)
	if !goes || run.DeletionTimestamp != nil {
		e.drop(run)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	name := client.ObjectKeyFromObject(run)
	if x := e.of[name]; x == nil {
		e.of[name] = &expiry{run: name, at: at}
		heap.Push(&e.next, e.of[name])
	} else {
		x.at = at
		heap.Fix(&e.next, x.place)
	}
	if e.next[0].run == name {
		e.stir()
	}
}

// drop forgets a Run.
func (e *expiries) drop(run *rqv1.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := client.ObjectKeyFromObject(run)
	if x := e.of[name]; x != nil {
		heap.Remove(&e.next, x.place)
		delete(e.of, name)
	}
}

func (e *expiries) stir() {
	select {
	case e.sooner <- struct{}{}:
	default: // it is looked at anyway
	}
}

// watch has Runs looked at in time, until the context ends. Whether one goes is decided then.
func (e *expiries) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.sooner:
		case <-e.clock.After(e.expire()):
		}
	}
}

// expire has those looked at whose time is over, and returns how long it is until the next one's is.
func (e *expiries) expire() time.Duration {
	now := e.clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.next) > 0 && !e.next[0].at.After(now) {
		e.changed(e.next[0].run)
		e.next[0].at = now.Add(again) // unless it is gone by then
		heap.Fix(&e.next, 0)
	}
	if len(e.next) == 0 {
		return longest
	}
	return min(longest, e.next[0].at.Sub(now))
}

// expiry is when a Run is to go.
type expiry struct {
	run   types.NamespacedName
	at    time.Time
	place int // in the heap
}

// expiryHeap has the next one first.
type expiryHeap []*expiry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *expiryHeap) Push(x any) {
	x.(*expiry).place = len(*h)
	*h = append(*h, x.(*expiry))
}

func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

// runDeleter deletes Runs whose time is over.
type runDeleter struct{ client client.Client }

// DeleteRun deletes a Run as it was seen. One that has changed since brings an event, and is looked at again.
func (d runDeleter) DeleteRun(ctx context.Context, run *rqv1.Run) error {
	err := d.client.Delete(ctx, run.DeepCopy(),
		client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion})
	if err == nil {
		klog.FromContext(ctx).V(2).Info("A Run is deleted whose time after its end is over", "run", klog.KObj(run))
	}
	return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
}
