package controllers

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// groupLine are the groups that are to be looked at, by what there is to do for them. Their namespaces share the
// workers: what is known of a group is read from the API server, and one namespace may have very many.
type groupLine struct {
	priorityqueue.PriorityQueue[group.Key]
	ended sync.Once

	mu     sync.Mutex
	shares *shares[group.Key]
}

func newGroupLine() *groupLine {
	rests := workqueue.NewTypedItemExponentialFailureRateLimiter[group.Key](100*time.Millisecond, 30*time.Second)
	return &groupLine{shares: newShares[group.Key](groupWorkers),
		PriorityQueue: priorityqueue.New("", func(o *priorityqueue.Opts[group.Key]) { o.RateLimiter = rests })}
}

// add has a group looked at after a while for some work; the least while counts, and the work that goes first.
func (l *groupLine) add(key group.Key, work lane.Work, after time.Duration) {
	l.put(key, work, priorityqueue.AddOpts{After: after})
}

// again has a group looked at again that went wrong, the later the more often it has.
func (l *groupLine) again(key group.Key, work lane.Work) {
	l.put(key, work, priorityqueue.AddOpts{RateLimited: true})
}

func (l *groupLine) put(key group.Key, work lane.Work, how priorityqueue.AddOpts) {
	priority := int(work)
	how.Priority = &priority
	l.AddWithOpts(how, key)
}

// next waits for a group that nobody works on, of a namespace that has not taken its share of the workers.
func (l *groupLine) next() (key group.Key, shutdown bool) {
	for {
		key, priority, shutdown := l.GetWithPriority()
		if shutdown {
			return key, true
		}
		l.mu.Lock()
		taken := l.shares.take(key.Namespace, key, lane.Work(priority))
		l.mu.Unlock()
		if taken {
			return key, false
		}
		l.Done(key)
	}
}

// done ends the work on a group that next has returned.
func (l *groupLine) done(key group.Key) {
	l.mu.Lock()
	back := l.shares.done(key.Namespace)
	l.mu.Unlock()
	l.Done(key)
	for _, other := range back {
		l.put(other.key, other.work, priorityqueue.AddOpts{})
	}
}

// forget has a group that went well not rest for long the next time that it does not.
func (l *groupLine) forget(key group.Key) { l.Forget(key) }

func (l *groupLine) shutDown() { l.ended.Do(l.ShutDown) }
