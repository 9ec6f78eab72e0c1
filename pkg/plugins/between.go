package plugins

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// between asks plugins about the places to which ranks are to move that run. No pod is there in whose cycle they could
// be asked; between two cycles nobody else looks at the scheduler's snapshot.
type between struct {
	book    *book.Book
	clock   clock.Clock
	plugins framework.Framework
	// fresh brings the snapshot up to date.
	fresh func() error
	// turn is held during each cycle.
	turn sync.Mutex
}

// AskBetween has it be done until the context ends. It is called before the scheduler runs.
func AskBetween(ctx context.Context, s *scheduler.Scheduler, b *book.Book, clock clock.Clock) {
	w := &between{book: b, clock: clock, plugins: s.Profiles[rqv1.SchedulerName]}
	if w.plugins == nil {
		return // it places no pods of Runs
	}
	w.fresh = func() error {
		snapshot, ok := w.plugins.MutableSnapshotSharedLister().(*cache.Snapshot)
		if !ok {
			return nil // a cycle brings it up to date
		}
		return s.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot)
	}
	next, cycles := s.NextEntity, false
	s.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		if cycles {
			w.turn.Unlock() // the last one is over
		}
		entity, err := next(logger)
		w.turn.Lock()
		cycles = true
		return entity, err
	}
	go w.watch(ctx)
}

// watch answers what the book asks until the context ends.
func (w *between) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.book.Inquiries().Filled():
		}
		for _, run := range w.book.Inquiries().Take() {
			if check := w.book.CheckMoves(run); check != nil {
				turned, sure := w.ask(ctx, check)
				w.book.ConcludeMoves(check, turned, sure, w.clock.Now())
			}
		}
	}
}

// ask returns what plugins say of a check, and whether that is sure: else it is asked again in a while.
func (w *between) ask(ctx context.Context, check *book.Check) ([]book.Turning, bool) {
	w.turn.Lock()
	defer w.turn.Unlock()
	if err := w.fresh(); err != nil {
		klog.FromContext(ctx).Error(err, "the scheduler's snapshot could not be brought up to date")
		return nil, false
	}
	since := w.clock.Now()
	v := &verifier{plugins: w.plugins, snapshot: w.plugins.MutableSnapshotSharedLister(), knows: w.book.Knows, seats: true,
		over: func() bool { return w.clock.Since(since) > longestBetween }}
	sure := v.verify(ctx, check)
	return slices.DeleteFunc(v.turned, func(t book.Turning) bool { return t.Why == unsure || t.Why == late }), sure
}

// longestBetween is for how long no cycle begins while it is asked.
const longestBetween = 250 * time.Millisecond
