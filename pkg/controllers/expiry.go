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
	doubt     *clockDoubt
	changed   func(run types.NamespacedName)

	mu     sync.Mutex
	of     map[types.NamespacedName]*expiry
	byTime expiryHeap
	out    map[types.NamespacedName]bool // are about to be looked at
	sooner chan struct{}                 // holds one when there may be something to do before its time
}

// Runs whose time is over are looked at abreast, however many there are: what is urgent waits for no more than those.
// One that is still there is looked at once more after a time that grows from again to seldom. A clock that jumps is
// noticed after longest.
const (
	abreast       = 2
	again, seldom = time.Minute, time.Hour
	longest       = 15 * time.Second
)

func newExpiries(byDefault time.Duration, doubt *clockDoubt, changed func(types.NamespacedName)) *expiries {
	return &expiries{byDefault: byDefault, clock: doubt.clock, doubt: doubt, changed: changed,
		of: map[types.NamespacedName]*expiry{}, out: map[types.NamespacedName]bool{}, sooner: make(chan struct{}, 1)}
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
		e.of[name] = &expiry{run: name, due: at, at: at, rest: again}
		heap.Push(&e.byTime, e.of[name])
	} else {
		x.due, x.at, x.rest = at, at, again
		heap.Fix(&e.byTime, x.place)
	}
	if e.byTime[0].run == name {
		e.stir()
	}
}

// drop forgets a Run.
func (e *expiries) drop(run *rqv1.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := client.ObjectKeyFromObject(run)
	if x := e.of[name]; x != nil {
		heap.Remove(&e.byTime, x.place)
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

// expire has some of those looked at whose time is over, and returns how long it is until the next one's is.
func (e *expiries) expire() time.Duration {
	now, back := e.doubt.look()
	e.mu.Lock()
	defer e.mu.Unlock()
	if back { // it was ahead, and so may be when some are to be looked at again
		for _, x := range e.byTime {
			x.at, x.rest = x.due, again
		}
		heap.Init(&e.byTime)
	}
	if e.doubt.doubts() {
		return longest
	}
	for len(e.byTime) > 0 && len(e.out) < abreast && !e.byTime[0].at.After(now) {
		x := e.byTime[0]
		e.out[x.run] = true
		e.changed(x.run)
		x.at, x.rest = now.Add(x.rest), min(2*x.rest, seldom) // unless it is gone by then
		heap.Fix(&e.byTime, 0)
	}
	if len(e.byTime) == 0 || len(e.out) == abreast {
		return longest
	}
	return min(longest, e.byTime[0].at.Sub(now))
}

// looked notes that a Run has been looked at.
func (e *expiries) looked(run types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out[run] {
		delete(e.out, run)
		e.stir()
	}
}

// expiry is when a Run is to go, when it is looked at for that, and how long that rests then if it is still there.
type expiry struct {
	run     types.NamespacedName
	due, at time.Time
	rest    time.Duration
	place   int // in the heap
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
type runDeleter struct {
	client  client.Client
	doubts  func() bool // whether the clock may be ahead
	refused *sync.Once  // is said by a process once; there may be as many as there are Runs
}

// DeleteRun deletes a Run as it was seen. One that has changed since brings an event, and is looked at again; so is,
// later, one that could not be deleted: nobody waits for it, and others are not to wait for more attempts. Whatever it
// is looked at for, none goes by a clock that may be ahead.
func (d runDeleter) DeleteRun(ctx context.Context, run *rqv1.Run) error {
	logger := klog.FromContext(ctx)
	if d.doubts() {
		return nil
	}
	as := client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion}
	err := ignore(d.client.Delete(ctx, run.DeepCopy(), as), apierrors.IsNotFound, apierrors.IsConflict)
	if err == nil {
		logger.V(2).Info("Deleting a finished Run whose time to live is over", "run", klog.KObj(run))
		return nil
	}
	d.refused.Do(func() {
		logger.Error(err, "A finished Run whose time to live is over could not be deleted yet", "run", klog.KObj(run))
	})
	logger.V(2).Info("Retrying to delete a finished Run", "run", klog.KObj(run), "err", err)
	return nil
}
