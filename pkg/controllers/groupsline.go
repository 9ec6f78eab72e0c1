package controllers

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// groupLine are the groups that are to be looked at, by what there is to do for them. Their namespaces share the
// workers: what is known of a group is read from the API server, and one namespace may have very many.
type groupLine struct {
	line[group.Key]
	ended sync.Once

	mu     sync.Mutex
	shares *shares[group.Key]
}

func newGroupLine() *groupLine {
	rests := workqueue.NewTypedItemExponentialFailureRateLimiter[group.Key](100*time.Millisecond, 30*time.Second)
	return &groupLine{line: newLine(rests), shares: newShares[group.Key](groupWorkers)}
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
		l.add(other.key, other.work, 0)
	}
}

func (l *groupLine) shutDown() { l.ended.Do(l.ShutDown) }
