package controllers

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// line is what is to be looked at, what goes first in front. K names it.
type line[K comparable] struct{ priorityqueue.PriorityQueue[K] }

func newLine[K comparable](rests workqueue.TypedRateLimiter[K]) line[K] {
	return line[K]{priorityqueue.New("", func(o *priorityqueue.Opts[K]) { o.RateLimiter = rests })}
}

// add has something looked at after a while for some work; the least while counts, and the work that goes first.
func (l line[K]) add(key K, work lane.Work, after time.Duration) {
	l.put(key, work, priorityqueue.AddOpts{After: after})
}

// again has something looked at again that went wrong, the later the more often it has.
func (l line[K]) again(key K, work lane.Work) {
	l.put(key, work, priorityqueue.AddOpts{RateLimited: true})
}

func (l line[K]) put(key K, work lane.Work, how priorityqueue.AddOpts) {
	priority := int(work)
	how.Priority = &priority
	l.AddWithOpts(how, key)
}

// lanes are the Runs that are to be looked at, in a line for each lane. A Run may stand in several, and is worked on by
// one worker at a time.
type lanes struct {
	lines map[lane.Lane]line[types.NamespacedName]
	ended sync.Once

	mu sync.Mutex
	// busy are the Runs that are worked on, with what else came up for them meanwhile.
	busy map[types.NamespacedName][]lane.Work
	// shares says who has the workers of a lane.
	shares map[lane.Lane]*shares[types.NamespacedName]
}

// newLanes returns lanes without Runs. How long a Run that fails rests is counted for the Run, whatever its lane.
func newLanes() *lanes {
	q := &lanes{lines: map[lane.Lane]line[types.NamespacedName]{}, busy: map[types.NamespacedName][]lane.Work{},
		shares: map[lane.Lane]*shares[types.NamespacedName]{}}
	rests := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](50*time.Millisecond, 10*time.Second)
	for _, l := range lane.All {
		q.lines[l] = newLine(rests)
		q.shares[l] = newShares[types.NamespacedName](l.Workers())
	}
	return q
}

// add has a Run looked at after a while for some work.
func (q *lanes) add(run types.NamespacedName, work lane.Work, after time.Duration) {
	q.lines[work.Lane()].add(run, work, after)
}

// again has a Run looked at again that went wrong.
func (q *lanes) again(run types.NamespacedName, work lane.Work) {
	q.lines[work.Lane()].again(run, work)
}

// next waits for a Run of a lane that nobody works on, of a namespace that has not taken its share of the workers.
func (q *lanes) next(l lane.Lane) (run types.NamespacedName, work lane.Work, shutdown bool) {
	for {
		run, priority, shutdown := q.lines[l].GetWithPriority()
		if shutdown {
			return run, 0, true
		}
		if work := lane.Work(priority); q.take(run, work) {
			return run, work, false
		}
		q.lines[l].Done(run)
	}
}

// take reports whether a Run is worked on from now on. If somebody does already, they look at it again; if its
// namespace has its share, it stands aside.
func (q *lanes) take(run types.NamespacedName, work lane.Work) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if besides, busy := q.busy[run]; busy {
		if !slices.Contains(besides, work) {
			q.busy[run] = append(besides, work)
		}
		return false
	}
	if !q.shares[work.Lane()].take(run.Namespace, run, work) {
		return false
	}
	q.busy[run] = nil
	return true
}

// done ends the work on a Run that next has returned.
func (q *lanes) done(run types.NamespacedName, work lane.Work) {
	q.mu.Lock()
	besides := q.busy[run]
	delete(q.busy, run)
	back := q.shares[work.Lane()].done(run.Namespace)
	q.mu.Unlock()
	q.lines[work.Lane()].Done(run)
	for _, other := range besides {
		q.add(run, other, 0)
	}
	for _, other := range back {
		q.add(other.key, other.work, 0)
	}
}

// forget has a Run that went well not rest for long the next time that it does not.
func (q *lanes) forget(run types.NamespacedName) { q.lines[lane.Frees].Forget(run) }

// count tells how many Runs stand in each lane.
func (q *lanes) count() {
	for l, line := range q.lines {
		q.mu.Lock()
		aside := q.shares[l].waiting()
		q.mu.Unlock()
		metrics.RunsInLine.WithLabelValues(l.String()).Set(float64(line.Len() + aside))
	}
}

func (q *lanes) shutDown() {
	q.ended.Do(func() {
		for _, line := range q.lines {
			line.ShutDown()
		}
	})
}
